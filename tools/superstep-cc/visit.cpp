// The statements of a body: what they touch, and what they cost.
#include "maps.h"
#include "walk.h"

namespace superstep_cc {

using namespace clang;

namespace {

// Functions of C's mathematics that a tile has, and what they count as.
struct Function {
  const char* name;
  double Work::*cost;
};
constexpr Function functions[] = {
    {"sqrt", &Work::roots},         {"exp", &Work::exponentials}, {"exp2", &Work::exponentials},
    {"expm1", &Work::exponentials}, {"log", &Work::logarithms},   {"log2", &Work::logarithms},
    {"log10", &Work::logarithms},   {"log1p", &Work::logarithms}, {"sin", &Work::sines},
    {"cos", &Work::sines},          {"tan", &Work::sines},        {"tanh", &Work::exponentials},
    {"atan", &Work::sines},         {"atan2", &Work::sines},      {"pow", &Work::powers},
    {"cbrt", &Work::powers},        {"fabs", &Work::floats},      {"fmin", &Work::floats},
    {"fmax", &Work::floats},        {"floor", &Work::floats},     {"ceil", &Work::floats},
    {"fma", &Work::floats},         {"round", &Work::floats},     {"abs", &Work::integers},
    {"hypot", &Work::roots},        {"fmod", &Work::divisions},   {"copysign", &Work::floats}};

}  // namespace

const void* known_function(llvm::StringRef name) {
  for (const Function& function : functions) {
    const llvm::StringRef base = function.name;
    if (name == base || (name.ends_with("f") && name.drop_back() == base) ||
        (name.starts_with("__builtin_") &&
         (name.drop_front(10) == base || name.drop_front(10).drop_back() == base)))
      return &function;
  }
  return nullptr;
}

Work& Walk::work() {
  for (Work& each : region.work)
    if (each.loops == around_ && each.inside == inside_ && each.counted == counted_) return each;
  region.work.push_back({around_, inside_, counted_});
  return region.work.back();
}

void Walk::count_operation(BinaryOperatorKind kind, QualType type) {
  if (!type->isArithmeticType()) return;
  if (!type->isFloatingType())
    work().integers += 1;
  else if (kind == BO_Div || kind == BO_DivAssign)
    work().divisions += 1;
  else
    work().floats += 1;
}

void Walk::visit_name(const DeclRefExpr* name) {
  const auto* var = dyn_cast<VarDecl>(name->getDecl());
  if (!var) return;
  const int item = region.item_of(var);
  if (item < 0) return;
  const Item& known = region.items[static_cast<std::size_t>(item)];
  if (known.role == Role::reduced) {
    // A variable's own text stays: the partial result has its name.
    if (!var->getType()->isScalarType())
      region.edits.push_back(
          {source.begin(name), source.end_of(name), "(*sst_v" + std::to_string(item) + ")"});
  } else if (known.takes_memory()) {
    region.refuse_dealing("not-affine: use of " + var->getNameAsString() + at(name));
  }
}

void Walk::visit_call(const CallExpr* call) {
  for (const Expr* argument : call->arguments()) visit_expression(argument);
  const FunctionDecl* function = call->getDirectCallee();
  if (!function) return;
  if (const auto* known = static_cast<const Function*>(known_function(function->getName())))
    work().*(known->cost) += 1;
  else if (function->getName().starts_with("omp_"))
    region.asks_who = true;
  else {
    region.asks_who = true, work().integers += 10;  // a guess
    region.guesses.push_back("a call of " + function->getNameAsString() + at(call) +
                             " counts as 10 operations");
  }
}

void Walk::visit_store(const Expr* target, bool reads) {
  target = target->IgnoreParens();
  if (access(target, reads, true)) return;
  visit_expression(target);
}

void Walk::visit_expression(const Expr* expression) {
  expression = expression->IgnoreParens();
  if (const auto* cast = dyn_cast<CastExpr>(expression)) {
    if (cast->getCastKind() == CK_LValueToRValue && access(cast->getSubExpr(), true, false)) return;
    return visit_expression(cast->getSubExpr());
  }
  if (const auto* binary = dyn_cast<BinaryOperator>(expression)) {
    if (binary->isAssignmentOp()) {
      visit_expression(binary->getRHS());
      visit_store(binary->getLHS(), binary->isCompoundAssignmentOp());
      if (binary->isCompoundAssignmentOp()) count_operation(binary->getOpcode(), binary->getType());
      return;
    }
    visit_expression(binary->getLHS());
    visit_expression(binary->getRHS());
    return count_operation(binary->getOpcode(), binary->getLHS()->getType());
  }
  if (const auto* unary = dyn_cast<UnaryOperator>(expression)) {
    if (unary->isIncrementDecrementOp()) {
      visit_store(unary->getSubExpr(), true);
      return count_operation(BO_Add, unary->getType());
    }
    if (unary->getOpcode() == UO_Minus && unary->getType()->isFloatingType()) work().floats += 1;
    return visit_expression(unary->getSubExpr());
  }
  if (const auto* call = dyn_cast<CallExpr>(expression)) return visit_call(call);
  if (const auto* name = dyn_cast<DeclRefExpr>(expression)) return visit_name(name);
  for (const Stmt* child : expression->children())
    if (const auto* part = dyn_cast_or_null<Expr>(child))
      visit_expression(part);
    else if (child)
      visit(child);
}

void Walk::visit_local(const VarDecl* var) {
  if (var->hasInit()) visit_expression(var->getInit());
  if (var->isStaticLocal()) region.refuse_dealing("clause: " + var->getNameAsString() + " is static");
  if (var->getType()->isPointerType())
    region.refuse_dealing("not-affine: " + var->getNameAsString() + " is a pointer of the body's own");
}

void Walk::guess_turns(const Stmt* loop) {
  region.guesses.push_back("a loop" + at(loop) + ", whose turns are not known at launch, counts as one turn");
}

// A loop whose turns depend on what is in memory: in a region that has an inspector it counts them.
void Walk::visit_counted(const ForStmt* loop) {
  const unsigned before = inside_;
  const int around = counted_;
  const bool counts = !gathered.empty() && loop->getInc() != nullptr;
  if (loop->getInit()) visit(loop->getInit());
  if (counts) {
    work().starts += 1;
    counted_ = ++region.counted;
    inside_ = 0;
    const unsigned end = source.end_of(loop->getInc());
    region.edits.push_back(
        {end, end, ", (void)(sst_p->turns && (sst_p->turns[" + std::to_string(counted_ - 1) + "] += 1))"});
  } else {
    guess_turns(loop);
  }
  if (loop->getCond()) visit_expression(loop->getCond());
  if (loop->getInc()) visit_expression(loop->getInc());
  visit(loop->getBody());
  inside_ = before;
  counted_ = around;
}

void Walk::visit_loop(const ForStmt* loop) {
  Loop read;
  const unsigned before = around_, inside = inside_;
  if (region.inner.size() >= 31 || !read_loop(loop, read)) {
    visit_counted(loop);
  } else {
    const unsigned bit = 1u << region.inner.size();
    work().starts += 1;
    // Values of a loop that runs down: from the lowest up.
    if (read.down) {
      std::swap(read.first, read.end);
      read.first.constant = read.first.constant.empty() ? "1L" : read.first.constant + " + 1L";
      read.end.constant = read.end.constant.empty() ? "1L" : read.end.constant + " + 1L";
    }
    read.parents = around_ | bit;
    if (const auto* start = dyn_cast<DeclStmt>(loop->getInit()); !start && !is_local(read.counter)) {
      const int item = region.item_of(read.counter);
      if (item >= 0 && region.items[static_cast<std::size_t>(item)].takes_memory())
        region.refuse_dealing("not-affine: the counter " + read.counter->getNameAsString() + " is shared" +
                              at(loop));
    }
    region.inner.push_back(read);
    around_ |= bit;
    inside_ |= counted_ > 0 ? bit : 0;
    visit(loop->getBody());
  }
  around_ = before;
  inside_ = inside;
}

// An atomic construct whose variable is no result of a reduction.
bool Walk::is_race(const OMPAtomicDirective* directive) const {
  if (!directive) return false;
  const VarDecl* var = directive->getX() ? base_variable(directive->getX()) : nullptr;
  const int item = var ? region.item_of(var) : -1;
  return item < 0 || region.items[static_cast<std::size_t>(item)].role != Role::reduced;
}

void Walk::visit(const Stmt* statement) {
  if (!statement) return;
  if (const auto* captured = dyn_cast<CapturedStmt>(statement)) return visit(captured->getCapturedStmt());
  if (const auto* directive = dyn_cast<OMPExecutableDirective>(statement)) {
    for (const OMPClause* clause : directive->clauses())
      if (isa<OMPReductionClause>(clause) || isa<OMPLastprivateClause>(clause))
        region.refuse_dealing("clause: a nested construct combines results" + at(statement));
    if (isa<OMPCriticalDirective>(directive) || is_race(dyn_cast<OMPAtomicDirective>(directive)))
      region.refuse_dealing("race: atomic or critical" + at(statement));
    if (directive->hasAssociatedStmt()) visit(directive->getRawStmt());
    return;
  }
  if (const auto* loop = dyn_cast<ForStmt>(statement)) return visit_loop(loop);
  if (isa<WhileStmt>(statement) || isa<DoStmt>(statement)) guess_turns(statement);
  if (const auto* expression = dyn_cast<Expr>(statement)) return visit_expression(expression);
  if (const auto* declaration = dyn_cast<DeclStmt>(statement)) {
    for (const Decl* each : declaration->decls())
      if (const auto* var = dyn_cast<VarDecl>(each)) visit_local(var);
    return;
  }
  for (const Stmt* child : statement->children()) visit(child);
}

}  // namespace superstep_cc
