// Atomic updates as reductions: every tile adds to copies of its own, which are combined at the end.
#include "clang/AST/RecursiveASTVisitor.h"
#include "maps.h"
#include "region.h"

namespace superstep_cc {

using namespace clang;

namespace {

int operation_of(BinaryOperatorKind kind) {
  switch (kind) {
    case BO_Add:
    case BO_AddAssign:
    case BO_Sub:
    case BO_SubAssign: return 0;
    case BO_Mul:
    case BO_MulAssign: return 1;
    case BO_And:
    case BO_AndAssign: return 4;
    case BO_Or:
    case BO_OrAssign: return 5;
    case BO_Xor:
    case BO_XorAssign: return 6;
    default: return -1;
  }
}

// x op= e, x++, x = x op e: the operator as reductions number them. -1: another form.
int operation_of(const Stmt* statement) {
  while (const auto* block = dyn_cast<CompoundStmt>(statement)) {
    if (block->size() != 1) return -1;
    statement = block->body_front();
  }
  if (const auto* unary = dyn_cast<UnaryOperator>(statement))
    return unary->isIncrementDecrementOp() ? operation_of(BO_Add) : -1;
  const auto* binary = dyn_cast<BinaryOperator>(statement);
  if (!binary) return -1;
  if (binary->isCompoundAssignmentOp()) return operation_of(binary->getOpcode());
  const auto* value = dyn_cast<BinaryOperator>(binary->getRHS()->IgnoreParenImpCasts());
  if (binary->getOpcode() != BO_Assign || !value) return -1;
  // e - x is no sum of what the iterations contribute.
  const bool first = base_variable(value->getLHS()) == base_variable(binary->getLHS());
  return value->getOpcode() == BO_Sub && !first ? -1 : operation_of(value->getOpcode());
}

struct Updates {
  int operation = -2;  // -2: none yet; -1: not one for all
  int names = 0;       // in updates
};

struct Finder : RecursiveASTVisitor<Finder> {
  std::map<const VarDecl*, Updates> updates;
  std::map<const VarDecl*, int> names;
  bool VisitDeclRefExpr(DeclRefExpr* name) {
    if (const auto* var = dyn_cast<VarDecl>(name->getDecl())) ++names[var];
    return true;
  }
  bool VisitOMPAtomicDirective(OMPAtomicDirective* directive) {
    const VarDecl* var = directive->getX() ? base_variable(directive->getX()) : nullptr;
    if (!var) return true;
    const bool plain =
        !directive->getSingleClause<OMPReadClause>() && !directive->getSingleClause<OMPWriteClause>() &&
        !directive->getSingleClause<OMPCaptureClause>() && !directive->getSingleClause<OMPCompareClause>();
    const int operation = plain ? operation_of(directive->getRawStmt()) : -1;
    Updates& known = updates[var];
    known.operation = known.operation == -2 || known.operation == operation ? operation : -1;
    Finder inside;
    inside.TraverseStmt(directive->getRawStmt());
    // In x op= e once, in x = x op e twice: what else names it reads it.
    const auto* assignment = dyn_cast<BinaryOperator>(directive->getRawStmt());
    const int expected = assignment && assignment->getOpcode() == BO_Assign ? 2 : 1;
    if (inside.names[var] != expected) known.operation = -1;
    known.names += inside.names[var];
    return true;
  }
};

}  // namespace

void reduce_atomics(Source& source, Region& region) {
  Finder finder;
  finder.TraverseStmt(const_cast<Stmt*>(region.body));
  for (Item& item : region.items) {
    const auto found = finder.updates.find(item.var);
    if (found == finder.updates.end() || found->second.operation < 0) continue;
    if (item.role != Role::mapped && item.role != Role::looked_up) continue;
    if (item.in_function || finder.names[item.var] != found->second.names) continue;
    if (type_code(source.context, element_of(item.var->getType())) < 0) continue;
    item.role = Role::reduced;
    item.operation = found->second.operation;
  }
}

}  // namespace superstep_cc
