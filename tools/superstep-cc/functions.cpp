#include "functions.h"

#include <regex>

#include "clang/AST/RecursiveASTVisitor.h"
#include "emit.h"
#include "superstep/openmp/program/abi.h"

namespace superstep_cc {

using namespace clang;

namespace {

struct Contents : RecursiveASTVisitor<Contents> {
  std::set<const FunctionDecl*> called;
  std::vector<const DeclRefExpr*> names;
  bool has_directives = false;
  bool VisitCallExpr(CallExpr* call) {
    const FunctionDecl *function = call->getDirectCallee(), *definition = nullptr;
    if (function && function->isDefined(definition)) called.insert(definition);
    return true;
  }
  bool VisitDeclRefExpr(DeclRefExpr* name) { return names.push_back(name), true; }
  bool VisitOMPExecutableDirective(OMPExecutableDirective*) { return has_directives = true; }
};

Contents contents_of(const Stmt* body) {
  Contents result;
  result.TraverseStmt(const_cast<Stmt*>(body));
  return result;
}

class Clones {
 public:
  explicit Clones(Region& region) : region_(region) {}

  // True: this function needs a version of its own.
  bool add(const FunctionDecl* function) {
    if (!seen_.insert(function).second) return std::ranges::count(region_.clones, function) > 0;
    const Contents contents = contents_of(function->getBody());
    bool needed = contents.has_directives;
    for (const FunctionDecl* called : contents.called) needed = add(called) || needed;
    for (const DeclRefExpr* name : contents.names)
      if (const auto* var = dyn_cast<VarDecl>(name->getDecl()); var && is_global_of_device(var))
        needed = true, add_item(var);
    if (needed) region_.clones.push_back(function);
    return needed;
  }

 private:
  void add_item(const VarDecl* var) {
    if (region_.item_of(var) < 0) {
      Item item;
      item.var = var;
      item.role = Role::looked_up;
      item.kind = sst_look_up;
      item.address = "(void *)&(" + var->getNameAsString() + ")";
      item.bytes = "(long)sizeof(" + var->getNameAsString() + ")";
      region_.items.push_back(item);
    }
    Item& item = region_.items[static_cast<std::size_t>(region_.item_of(var))];
    item.used = item.in_function = true;
    region_.refuse_dealing("unmapped: a function of the region uses " + var->getNameAsString());
  }

  Region& region_;
  std::set<const FunctionDecl*> seen_;
};

std::string name_of_clone(const FunctionDecl* function) {
  return "sst_on_tile_" + function->getNameAsString();
}

// What stands before the name, as a function of this file.
std::string head_of(const Source& source, const FunctionDecl* function) {
  const std::string head =
      source.text.slice(source.begin(function->getBeginLoc()), source.begin(function->getLocation())).str();
  return "static " + std::regex_replace(head, std::regex("\\b(static|extern|inline)\\b"), "") +
         name_of_clone(function);
}

unsigned end_of_name(const Source& source, const FunctionDecl* function) {
  return source.begin(function->getLocation()) + static_cast<unsigned>(function->getName().size());
}

}  // namespace

bool is_global_of_device(const VarDecl* var) {
  const auto declared = OMPDeclareTargetDeclAttr::isDeclareTargetDeclaration(var);
  return var->hasGlobalStorage() && !var->isStaticLocal() && !var->getType()->isPointerType() && declared &&
         declared != OMPDeclareTargetDeclAttr::MT_Link;
}

void add_functions(Source&, Region& region) {
  Clones clones(region);
  for (const FunctionDecl* called : contents_of(region.body).called) clones.add(called);
}

std::vector<Edit> calls_of_clones(const Source& source, const Stmt* body,
                                  const std::vector<const FunctionDecl*>& clones) {
  std::vector<Edit> edits;
  for (const DeclRefExpr* name : contents_of(body).names) {
    const auto* function = dyn_cast<FunctionDecl>(name->getDecl());
    const FunctionDecl* definition = nullptr;
    if (function && function->isDefined(definition) && std::ranges::count(clones, definition) > 0)
      edits.push_back({source.begin(name), source.end_of(name), name_of_clone(definition)});
  }
  return edits;
}

std::string declarations_of_clones(const Source& source, const Region& region) {
  std::string result;
  for (const Item& item : region.items)
    if (item.in_function)
      result += "static __thread __typeof__(" + item.var->getNameAsString() + ") *sst_at_" +
                item.var->getNameAsString() + ";\n";
  for (const FunctionDecl* function : region.clones)
    result += head_of(source, function) +
              source.text.slice(end_of_name(source, function), source.begin(function->getBody())).str() +
              ";\n";
  return result;
}

std::string clone_of(Source& source, const FunctionDecl* function, const Region& region) {
  const Stmt* body = function->getBody();
  std::vector<Edit> edits = sequential_edits(source, body);
  for (Edit& edit : calls_of_clones(source, body, region.clones)) edits.push_back(edit);
  for (const DeclRefExpr* name : contents_of(body).names)
    if (const auto* var = dyn_cast<VarDecl>(name->getDecl()); var && is_global_of_device(var))
      edits.push_back({source.begin(name), source.end_of(name), "(*sst_at_" + var->getNameAsString() + ")"});
  return "\n" + declarations_of_clones(source, region) + head_of(source, function) +
         source.with(end_of_name(source, function), source.end(body), edits) + "\n";
}

}  // namespace superstep_cc
