// What keeps a body off the tiles altogether.
#include <functional>
#include <set>

#include "clang/AST/RecursiveASTVisitor.h"
#include "region.h"

namespace superstep_cc {

using namespace clang;

const void* known_function(llvm::StringRef name);

namespace {

class Unfit : public RecursiveASTVisitor<Unfit> {
 public:
  Unfit(Source& source, std::set<const FunctionDecl*> calling)
      : source_(source), calling_(std::move(calling)) {}
  std::string reason;

  bool VisitImplicitCastExpr(ImplicitCastExpr* cast) {
    if (cast->getCastKind() != CK_LValueToRValue || !cast->getType()->isPointerType()) return true;
    const Expr* from = cast->getSubExpr()->IgnoreParens();
    while (const auto* subscript = dyn_cast<ArraySubscriptExpr>(from)) {
      const Expr* base = subscript->getBase()->IgnoreParenImpCasts();
      const auto* name = dyn_cast<DeclRefExpr>(base);
      if (!name || !isa<VarDecl>(name->getDecl()) || !cast_is_local(name)) break;
      from = base;
    }
    if (!isa<DeclRefExpr>(from))
      stop(cast, "pointer-chase: a pointer is read from memory: " + source_.words(cast));
    return true;
  }
  bool VisitCastExpr(CastExpr* cast) {
    if (cast->getCastKind() == CK_IntegralToPointer) stop(cast, "pointer-chase: a number becomes a pointer");
    return true;
  }
  bool VisitCallExpr(CallExpr* call) {
    const FunctionDecl* function = call->getDirectCallee();
    if (!function) return stop(call, "indirect-call: " + source_.words(call)), true;
    const llvm::StringRef name = function->getName();
    if (known_function(name) || name.starts_with("omp_") || name == "memcpy" || name == "memset") return true;
    const FunctionDecl* definition = nullptr;
    if (!function->isDefined(definition)) {
      return stop(call, "host-call: " + name.str() + " is not in this file"), true;
    }
    if (calling_.contains(definition)) return stop(call, "recursion: " + name.str()), true;
    std::set<const FunctionDecl*> deeper = calling_;
    deeper.insert(definition);
    Unfit inside(source_, deeper);
    inside.in_function_ = true;
    inside.TraverseStmt(definition->getBody());
    if (!inside.reason.empty() && reason.empty()) reason = inside.reason + ", in " + name.str();
    return true;
  }
  bool VisitDeclRefExpr(DeclRefExpr* name) {
    const auto* var = dyn_cast<VarDecl>(name->getDecl());
    if (!in_function_ || !var || !var->hasGlobalStorage() || var->getType().isConstant(source_.context))
      return true;
    stop(name, "unmapped: a function of the region uses " + var->getNameAsString());
    return true;
  }
  bool VisitVarDecl(VarDecl* var) {
    if (var->isStaticLocal()) reason = "unmapped: " + var->getNameAsString() + " is static in the region";
    return true;
  }
  bool VisitGCCAsmStmt(GCCAsmStmt* statement) { return stop(statement, "host-call: assembly"), true; }

 private:
  bool cast_is_local(const DeclRefExpr* name) const {
    return cast<VarDecl>(name->getDecl())->isLocalVarDecl() && name->getType()->isArrayType() &&
           !in_region_item(name);
  }
  bool in_region_item(const DeclRefExpr* name) const { return name->refersToEnclosingVariableOrCapture(); }
  void stop(const Stmt* statement, const std::string& why) {
    if (reason.empty())
      reason = why + " (line " + std::to_string(source_.line(statement->getBeginLoc())) + ")";
  }

  Source& source_;
  std::set<const FunctionDecl*> calling_;
  bool in_function_ = false;
};

}  // namespace

std::string unfit(Source& source, const Stmt* body) {
  Unfit visitor(source, {});
  visitor.TraverseStmt(const_cast<Stmt*>(body));
  return visitor.reason;
}

}  // namespace superstep_cc
