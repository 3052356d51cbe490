#include "walk.h"

#include "clang/AST/RecursiveASTVisitor.h"

namespace superstep_cc {

using namespace clang;

namespace {

const VarDecl* named(const Expr* expression) {
  const auto* reference = dyn_cast<DeclRefExpr>(expression->IgnoreParenImpCasts());
  return reference ? dyn_cast<VarDecl>(reference->getDecl()) : nullptr;
}

// The variable at the root of an lvalue or of a sum with a pointer.
const VarDecl* root(const Expr* expression) {
  expression = expression->IgnoreParenCasts();
  if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(expression)) return root(subscript->getBase());
  if (const auto* member = dyn_cast<MemberExpr>(expression)) return root(member->getBase());
  if (const auto* unary = dyn_cast<UnaryOperator>(expression)) return root(unary->getSubExpr());
  if (const auto* binary = dyn_cast<BinaryOperator>(expression)) {
    const VarDecl* left = binary->getLHS()->getType()->isPointerType() ? root(binary->getLHS()) : nullptr;
    return left ? left : root(binary->getRHS());
  }
  return named(expression);
}

struct Collector : RecursiveASTVisitor<Collector> {
  std::set<const VarDecl*>&modified, &disturbed, &reached, &followed;
  std::set<const Stmt*>& increments;
  std::set<const Expr*> plain;   // names whose elements are only read
  std::set<const Expr*> values;  // names of pointers that are set or compared
  Collector(std::set<const VarDecl*>& m, std::set<const VarDecl*>& d, std::set<const VarDecl*>& r,
            std::set<const VarDecl*>& f, std::set<const Stmt*>& i)
      : modified(m), disturbed(d), reached(r), followed(f), increments(i) {}

  void note_value(const Expr* expression) {
    if (named(expression)) values.insert(expression->IgnoreParenImpCasts());
  }
  bool VisitCastExpr(CastExpr* cast) {
    if (cast->getCastKind() == CK_PointerToIntegral || cast->getCastKind() == CK_PointerToBoolean)
      note_value(cast->getSubExpr());
    return true;
  }

  void write(const Expr* target, const Stmt* by) {
    target = target->IgnoreParens();
    if (const VarDecl* var = root(target)) {
      disturbed.insert(var);
      if (named(target) && !increments.contains(by)) modified.insert(var);
    }
  }
  bool VisitForStmt(ForStmt* loop) {
    if (loop->getInit()) increments.insert(loop->getInit());
    if (loop->getInc()) increments.insert(loop->getInc());
    return true;
  }
  bool VisitBinaryOperator(BinaryOperator* binary) {
    if (binary->isAssignmentOp()) write(binary->getLHS(), binary);
    if (binary->getOpcode() == BO_Assign || binary->isComparisonOp()) note_value(binary->getLHS());
    if (binary->isComparisonOp()) note_value(binary->getRHS());
    return true;
  }
  bool VisitUnaryOperator(UnaryOperator* unary) {
    if (unary->isIncrementDecrementOp()) write(unary->getSubExpr(), unary);
    if (unary->getOpcode() == UO_AddrOf) {
      if (const VarDecl* var = root(unary->getSubExpr())) modified.insert(var), disturbed.insert(var);
    }
    return true;
  }
  // A read of an element: what its name leads to is not disturbed by it.
  bool VisitImplicitCastExpr(ImplicitCastExpr* cast) {
    if (cast->getCastKind() != CK_LValueToRValue) return true;
    const Expr* from = cast->getSubExpr()->IgnoreParens();
    while (true) {
      if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(from))
        from = subscript->getBase()->IgnoreParenImpCasts();
      else if (const auto* member = dyn_cast<MemberExpr>(from); member && !member->isArrow())
        from = member->getBase()->IgnoreParenImpCasts();
      else
        break;
    }
    if (!cast->getType()->isPointerType() || from != cast->getSubExpr()->IgnoreParens()) plain.insert(from);
    return true;
  }
  bool VisitDeclRefExpr(DeclRefExpr* name) {
    if (const auto* var = dyn_cast<VarDecl>(name->getDecl())) {
      reached.insert(var);
      if (!values.contains(name)) followed.insert(var);
      if ((var->getType()->isPointerType() || var->getType()->isArrayType() ||
           var->getType()->isRecordType()) &&
          !plain.contains(name))
        disturbed.insert(var);
    }
    return true;
  }
};

}  // namespace

void Walk::collect(const Stmt* body) {
  Collector collector(modified_, disturbed_, reached, followed, increments_);
  collector.TraverseStmt(const_cast<Stmt*>(body));
}

void Walk::start_again(std::set<int> items) {
  gathered = std::move(items);
  loaded_.clear();
  around_ = inside_ = 0;
  counted_ = 0;
}

std::string Walk::at(const Stmt* statement) const {
  return " (line " + std::to_string(source.line(statement->getBeginLoc())) + ")";
}

bool Walk::is_local(const VarDecl* var) const {
  const unsigned place = source.begin(var->getLocation());
  return place >= source.begin(region.body) && place < source.end(region.body);
}

int Walk::loop_of(const VarDecl* var) const {
  const std::size_t dealt = region.distributed.size();
  for (std::size_t k = 0; k < dealt; ++k)
    if (region.distributed[k].counter == var) return static_cast<int>(k);
  for (std::size_t k = 0; k < region.inner.size(); ++k)
    if (region.inner[k].counter == var && around_ >> k & 1u) return static_cast<int>(dealt + k);
  return -1;
}

// Known before the region begins: made of constants and of variables whose copies the region does not write.
bool Walk::invariant(const Expr* expression) {
  expression = expression->IgnoreParenImpCasts();
  if (!expression->getType()->isIntegerType()) return false;
  if (expression->isEvaluatable(source.context)) return true;
  if (const auto* name = dyn_cast<DeclRefExpr>(expression)) {
    const auto* var = dyn_cast<VarDecl>(name->getDecl());
    if (!var || is_local(var) || modified_.contains(var) || loop_of(var) >= 0) return false;
    const int item = region.item_of(var);
    return item < 0 || region.items[static_cast<std::size_t>(item)].role == Role::first_private;
  }
  if (const auto* cast = dyn_cast<CStyleCastExpr>(expression)) return invariant(cast->getSubExpr());
  if (const auto* unary = dyn_cast<UnaryOperator>(expression))
    return (unary->getOpcode() == UO_Minus || unary->getOpcode() == UO_Plus) &&
           invariant(unary->getSubExpr());
  const auto* binary = dyn_cast<BinaryOperator>(expression);
  if (!binary || binary->isAssignmentOp() || binary->isCommaOp()) return false;
  return invariant(binary->getLHS()) && invariant(binary->getRHS());
}

namespace {

std::string plus(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + " + " + b;
}
std::string times(const std::string& a, const std::string& b) { return "(" + a + ") * (" + b + ")"; }

Linear sum(const Linear& a, const Linear& b) {
  Linear result = a;
  result.valid = a.valid && b.valid;
  result.constant = plus(a.constant, b.constant);
  for (const auto& [loop, text] : b.coefficients)
    result.coefficients[loop] = plus(result.coefficients[loop], text);
  return result;
}

Linear scaled(const Linear& a, const std::string& factor) {
  Linear result = a;
  if (!a.constant.empty()) result.constant = times(a.constant, factor);
  for (auto& [loop, text] : result.coefficients) text = times(text, factor);
  return result;
}

Linear constant(const std::string& text) {
  Linear result;
  result.valid = true;
  result.constant = text;
  return result;
}

}  // namespace

Linear Walk::linear(const Expr* expression) {
  expression = expression->IgnoreParens();
  if (const auto* cast = dyn_cast<CastExpr>(expression)) {
    const Expr* from = cast->getSubExpr();
    if (!from->getType()->isIntegerType() || !cast->getType()->isIntegerType()) return {};
    // Narrowing may change the value.
    if (source.context.getTypeSize(cast->getType()) < source.context.getTypeSize(from->getType()) &&
        !invariant(from))
      return {};
    return linear(from);
  }
  if (!expression->getType()->isIntegerType()) return {};
  if (invariant(expression)) return constant("(long)(" + source.words(expression) + ")");
  if (const VarDecl* var = named(expression)) {
    if (const int loop = loop_of(var); loop >= 0) {
      Linear result;
      result.valid = true;
      result.coefficients[loop] = "1L";
      return result;
    }
    // A local that is set once stands for what it is set to.
    if (is_local(var) && !modified_.contains(var) && var->hasInit() && !var->isStaticLocal())
      return linear(var->getInit());
    return {};
  }
  if (const auto* unary = dyn_cast<UnaryOperator>(expression)) {
    if (unary->getOpcode() == UO_Minus) return scaled(linear(unary->getSubExpr()), "-1L");
    return {};
  }
  const auto* binary = dyn_cast<BinaryOperator>(expression);
  if (!binary) return {};
  const Linear a = linear(binary->getLHS()), b = linear(binary->getRHS());
  if (!a.valid || !b.valid) return {};
  if (binary->getOpcode() == BO_Add) return sum(a, b);
  if (binary->getOpcode() == BO_Sub) return sum(a, scaled(b, "-1L"));
  if (binary->getOpcode() != BO_Mul) return {};
  if (a.coefficients.empty()) return scaled(b, a.constant.empty() ? "0L" : a.constant);
  if (b.coefficients.empty()) return scaled(a, b.constant.empty() ? "0L" : b.constant);
  return {};
}

namespace {

// i = e, or int i = e.
bool read_start(const ForStmt* loop, const VarDecl*& counter, const Expr*& first) {
  if (const auto* declaration = dyn_cast_or_null<DeclStmt>(loop->getInit())) {
    if (!declaration->isSingleDecl()) return false;
    counter = dyn_cast<VarDecl>(declaration->getSingleDecl());
    first = counter ? counter->getInit() : nullptr;
  } else if (const auto* assignment = dyn_cast_or_null<BinaryOperator>(loop->getInit());
             assignment && assignment->getOpcode() == BO_Assign) {
    counter = named(assignment->getLHS());
    first = assignment->getRHS();
  }
  return counter && first && counter->getType()->isIntegerType();
}

// What the counter grows by; `less`: by its negative.
bool read_step(const Expr* increment, const VarDecl* counter, const Expr*& step, bool& less) {
  increment = increment->IgnoreParens();
  if (const auto* unary = dyn_cast<UnaryOperator>(increment)) {
    less = unary->isDecrementOp();
    return unary->isIncrementDecrementOp() && named(unary->getSubExpr()) == counter;
  }
  const auto* binary = dyn_cast<BinaryOperator>(increment);
  if (!binary || named(binary->getLHS()) != counter) return false;
  if (binary->getOpcode() == BO_AddAssign || binary->getOpcode() == BO_SubAssign) {
    less = binary->getOpcode() == BO_SubAssign;
    step = binary->getRHS();
    return true;
  }
  const auto* sum = dyn_cast<BinaryOperator>(binary->getRHS()->IgnoreParenImpCasts());
  if (binary->getOpcode() != BO_Assign || !sum || !sum->isAdditiveOp()) return false;
  less = sum->getOpcode() == BO_Sub;
  const bool left = named(sum->getLHS()) == counter;
  step = left ? sum->getRHS() : sum->getLHS();
  return left || (!less && named(sum->getRHS()) == counter);
}

}  // namespace

bool Walk::read_loop(const ForStmt* loop, Loop& result) {
  const Expr *first = nullptr, *step = nullptr;
  bool less = false;
  result.statement = loop;
  if (!read_start(loop, result.counter, first) || !loop->getInc() || !loop->getCond()) return false;
  if (modified_.contains(result.counter) || !read_step(loop->getInc(), result.counter, step, less))
    return false;
  if (step && !invariant(step)) return false;
  const auto* condition = dyn_cast<BinaryOperator>(loop->getCond()->IgnoreParens());
  if (!condition || !(condition->isRelationalOp() || condition->getOpcode() == BO_NE)) return false;
  const bool left = named(condition->getLHS()) == result.counter;
  if (!left && named(condition->getRHS()) != result.counter) return false;
  BinaryOperatorKind kind = condition->getOpcode();
  if (!left && kind != BO_NE)
    kind = BinaryOperator::reverseComparisonOp(kind) == kind ? kind
           : kind == BO_LT                                   ? BO_GT
           : kind == BO_GT                                   ? BO_LT
           : kind == BO_LE                                   ? BO_GE
                                                             : BO_LE;
  result.down = kind == BO_GT || kind == BO_GE || (kind == BO_NE && less);
  if (kind == BO_NE && step) return false;
  result.first = linear(first);
  result.end = linear(left ? condition->getRHS() : condition->getLHS());
  if (kind == BO_LE) result.end = sum(result.end, constant("1L"));
  if (kind == BO_GE) result.end = sum(result.end, constant("-1L"));
  result.step =
      (less ? std::string("-") : std::string()) + (step ? "(long)(" + source.words(step) + ")" : "1L");
  return result.first.valid && result.end.valid;
}

bool Walk::read_reference(const Expr* expression, Reference& reference) const {
  expression = expression->IgnoreParens();
  std::vector<const Expr*> pending;
  while (true) {
    if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(expression)) {
      pending.push_back(subscript->getIdx());
      reference.subscripts.insert(reference.subscripts.begin(), pending);
      pending.clear();
      expression = subscript->getBase()->IgnoreParens();
    } else if (const auto* unary = dyn_cast<UnaryOperator>(expression);
               unary && unary->getOpcode() == UO_Deref) {
      reference.subscripts.insert(reference.subscripts.begin(), pending);
      pending.clear();
      expression = unary->getSubExpr()->IgnoreParens();
    } else if (const auto* cast = dyn_cast<ImplicitCastExpr>(expression);
               cast && (cast->getCastKind() == CK_ArrayToPointerDecay ||
                        (cast->getCastKind() == CK_LValueToRValue &&
                         isa<DeclRefExpr>(cast->getSubExpr()->IgnoreParens())) ||
                        cast->getCastKind() == CK_NoOp)) {
      expression = cast->getSubExpr()->IgnoreParens();
    } else if (const auto* sum = dyn_cast<BinaryOperator>(expression); sum && sum->getOpcode() == BO_Add &&
                                                                       sum->getType()->isPointerType() &&
                                                                       !reference.subscripts.empty()) {
      const bool left = sum->getLHS()->getType()->isPointerType();
      reference.subscripts.front().push_back(left ? sum->getRHS() : sum->getLHS());
      expression = (left ? sum->getLHS() : sum->getRHS())->IgnoreParens();
    } else {
      break;
    }
  }
  const auto* name = dyn_cast<DeclRefExpr>(expression);
  reference.var = name ? dyn_cast<VarDecl>(name->getDecl()) : nullptr;
  return reference.var != nullptr;
}

// sizeof texts: of a variable below so many subscripts.
std::vector<std::string> Walk::extents_of(const VarDecl* var, std::size_t dimensions) const {
  std::vector<std::string> result;
  std::string element = var->getNameAsString();
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (d > 0) result.push_back("(long)(sizeof(" + element + ") / sizeof((" + element + ")[0]))");
    element = "(" + element + ")[0]";
  }
  return result;
}

bool Walk::access(const Expr* expression, bool reads, bool writes) {
  Reference reference;
  if (!read_reference(expression, reference)) return false;
  const int number = region.item_of(reference.var);
  if (number < 0 || !region.items[static_cast<std::size_t>(number)].takes_memory()) return false;
  if (region.items[static_cast<std::size_t>(number)].role == Role::reduced) return false;
  if (!expression->getType()->isArithmeticType() && !expression->getType()->isEnumeralType()) return false;
  if (reference.var->getType()->isPointerType() &&
      (reference.subscripts.empty() || modified_.contains(reference.var)))
    return false;
  Access access;
  access.item = number;
  access.line = source.line(expression->getBeginLoc());
  access.reads = reads;
  access.writes = writes;
  access.gathered = gathered.contains(number);
  const std::size_t dimensions = std::max<std::size_t>(1, reference.subscripts.size());
  access.inner_extents = extents_of(reference.var, dimensions);
  std::size_t used_extra = 0;
  for (std::size_t d = 0; d < dimensions; ++d) {
    Linear all = constant("");
    if (!reference.subscripts.empty())
      for (const Expr* part : reference.subscripts[d]) all = sum(all, linear(part));
    if (!all.valid) {
      if (writes)
        region.refuse_dealing("not-affine: " + source.words(expression) + " is written" + at(expression));
      for (const Expr* part : reference.subscripts[d]) visit_expression(part);
      access.extra.push_back(static_cast<int>(region.extra.size() + used_extra++));
    } else {
      access.extra.push_back(-1);
    }
    access.subscripts.push_back(all);
  }
  // The same element again is the same access.
  std::size_t k = 0;
  const auto same = [&](const Access& other) {
    if (used_extra > 0 || other.item != access.item || other.extra != access.extra) return false;
    for (std::size_t d = 0; d < dimensions; ++d)
      if (other.subscripts[d].constant != access.subscripts[d].constant ||
          other.subscripts[d].coefficients != access.subscripts[d].coefficients)
        return false;
    return true;
  };
  while (k < region.accesses.size() && !same(region.accesses[k])) ++k;
  if (k == region.accesses.size()) {
    region.accesses.push_back(access);
    for (std::size_t d = 0; d < dimensions; ++d)
      if (access.extra[d] >= 0) region.extra.push_back(d == 0 ? "0L" : access.inner_extents[d - 1]);
  } else {
    region.accesses[k].reads = region.accesses[k].reads || reads;
    region.accesses[k].writes = region.accesses[k].writes || writes;
  }
  region.edits.push_back({source.begin(expression), source.end_of(expression),
                          element_text(static_cast<int>(k), region.accesses[k], reference)});
  // What an iteration has read before is in a register.
  if (reads && (used_extra > 0 || loaded_.insert({k, around_}).second)) work().loads += 1;
  if (writes) work().stores += 1;
  return true;
}

// "sst_d3[sst_s3_0 * sst_t0 + ...]": strides of the library's loops, counters of the program's inner ones.
std::string Walk::element_text(int number, const Access& access, const Reference& reference) {
  const std::string id = std::to_string(number);
  std::set<int> loops;
  std::string text;
  for (const Linear& subscript : access.subscripts)
    if (subscript.valid)
      for (const auto& [loop, coefficient] : subscript.coefficients) loops.insert(loop);
  const auto dealt = static_cast<int>(region.distributed.size());
  for (const int loop : loops) {
    const std::string counter =
        loop < dealt
            ? "sst_t" + std::to_string(loop)
            : "(long)" + region.inner[static_cast<std::size_t>(loop - dealt)].counter->getNameAsString();
    text = plus(text, "sst_s" + id + "_" + std::to_string(loop) + " * " + counter);
  }
  for (std::size_t d = 0; d < access.subscripts.size(); ++d) {
    if (access.extra[d] < 0) continue;
    std::string value;
    for (const Expr* part : reference.subscripts[d])
      value =
          plus(value, "(long)(" + source.with(source.begin(part), source.end_of(part), region.edits) + ")");
    text = plus(text, "sst_x" + std::to_string(access.extra[d]) + " * (" + value + ")");
  }
  if (text.empty()) text = "0";
  if (access.gathered) return "sst_d" + id + "[sst_gathered(sst_g" + id + ", sst_o" + id + " + " + text + ")]";
  return "sst_d" + id + "[" + text + "]";
}

}  // namespace superstep_cc
