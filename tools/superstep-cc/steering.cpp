#include "steering.h"

#include "clang/AST/RecursiveASTVisitor.h"

namespace superstep_cc {

using namespace clang;

namespace {

using Variables = std::set<const VarDecl*>;

Variables variables_of(const Stmt* statement) {
  struct Names : RecursiveASTVisitor<Names> {
    Variables found;
    bool VisitDeclRefExpr(DeclRefExpr* name) {
      if (const auto* var = dyn_cast<VarDecl>(name->getDecl())) found.insert(var);
      return true;
    }
  } names;
  if (statement) names.TraverseStmt(const_cast<Stmt*>(statement));
  return std::move(names.found);
}

// The variable that an assignment changes, itself or an element of it.
const VarDecl* changed(const Expr* target) {
  target = target->IgnoreParenCasts();
  while (true) {
    if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(target))
      target = subscript->getBase()->IgnoreParenCasts();
    else if (const auto* member = dyn_cast<MemberExpr>(target))
      target = member->getBase()->IgnoreParenCasts();
    else
      break;
  }
  const auto* name = dyn_cast<DeclRefExpr>(target);
  return name ? dyn_cast<VarDecl>(name->getDecl()) : nullptr;
}

// Variables that decide, from the places where values do; then all that is assigned to them, until no more
// come. Every variable is taken for one, whatever order its values come in: rather too many than too few.
class Decisions : public RecursiveASTVisitor<Decisions> {
 public:
  Variables found;
  bool again = true;

  bool VisitArraySubscriptExpr(ArraySubscriptExpr* subscript) { return add(subscript->getIdx()); }
  bool VisitUnaryOperator(UnaryOperator* unary) {
    return unary->getOpcode() == UO_Deref ? add(unary->getSubExpr()) : true;
  }
  bool VisitForStmt(ForStmt* loop) {
    return add(loop->getInit()), add(loop->getCond()), add(loop->getInc());
  }
  bool VisitWhileStmt(WhileStmt* loop) { return add(loop->getCond()); }
  bool VisitDoStmt(DoStmt* loop) { return add(loop->getCond()); }
  bool VisitIfStmt(IfStmt* choice) { return add(choice->getCond()); }
  bool VisitSwitchStmt(SwitchStmt* choice) { return add(choice->getCond()); }
  bool VisitConditionalOperator(ConditionalOperator* choice) { return add(choice->getCond()); }
  bool VisitBinaryOperator(BinaryOperator* binary) {
    if (binary->isLogicalOp()) add(binary->getLHS());
    if (binary->getOpcode() == BO_Div || binary->getOpcode() == BO_Rem ||
        binary->getOpcode() == BO_DivAssign || binary->getOpcode() == BO_RemAssign)
      add(binary->getRHS());
    if (binary->isAssignmentOp())
      if (const VarDecl* var = changed(binary->getLHS()); var && found.contains(var)) add(binary->getRHS());
    return true;
  }
  bool VisitVarDecl(VarDecl* var) {
    if (var->hasInit() && found.contains(var)) add(var->getInit());
    return true;
  }

 private:
  bool add(const Stmt* statement) {
    for (const VarDecl* var : variables_of(statement)) again = found.insert(var).second || again;
    return true;
  }
};

}  // namespace

std::set<int> steering_items(const Region& region, const Stmt* body) {
  Decisions decisions;
  while (decisions.again) {
    decisions.again = false;
    decisions.TraverseStmt(const_cast<Stmt*>(body));
  }
  std::set<int> result;
  for (std::size_t i = 0; i < region.items.size(); ++i) {
    const Item& item = region.items[i];
    if (item.takes_memory() && item.role != Role::reduced && decisions.found.contains(item.var))
      result.insert(static_cast<int>(i));
  }
  return result;
}

std::set<int> gathered_items(const Walk& walk, const Stmt* body) {
  const Region& region = walk.region;
  std::set<int> result;
  if (region.asks_who) return result;
  for (const Access& access : region.accesses)
    for (const int extra : access.extra)
      if (extra >= 0 && walk.only_read(region.items[static_cast<std::size_t>(access.item)].var))
        result.insert(access.item);
  for (const int item : steering_items(region, body))
    if (!walk.only_read(region.items[static_cast<std::size_t>(item)].var)) return {};
  return result;
}

}  // namespace superstep_cc
