#include "types.h"

#include "clang/AST/RecursiveASTVisitor.h"

namespace superstep_cc {

using namespace clang;

namespace {

bool has_no_name(const TagDecl* tag) { return !tag->getIdentifier() && !tag->getTypedefNameForAnonDecl(); }

std::string name_of_unnamed(const Source& source, const TagDecl* tag) {
  return "sst_u" + std::to_string(source.begin(tag->getBeginLoc()));
}

struct Definition {
  unsigned begin, end;
  std::string name, text;
};

// What is defined before a place, in the blocks that this place is in.
class InSight : public RecursiveASTVisitor<InSight> {
 public:
  InSight(const Source& source, unsigned place) : source_(source), place_(place) {}
  std::vector<Definition> found;

  bool TraverseCompoundStmt(CompoundStmt* block, DataRecursionQueue* = nullptr) {
    const std::size_t before = found.size();
    for (Stmt* statement : block->body()) TraverseStmt(statement);
    if (source_.end(block) <= place_) found.resize(before);
    return true;
  }
  bool VisitTagDecl(TagDecl* tag) {
    if (!tag->isThisDeclarationADefinition()) return true;
    std::string text = source_.text.slice(source_.begin(tag->getBeginLoc()), end_of(tag)).str();
    const std::string name = has_no_name(tag) ? name_of_unnamed(source_, tag) : tag->getNameAsString();
    if (has_no_name(tag)) text.insert(tag->getKindName().size(), " " + name);
    add(tag, tag->getKindName().str() + " " + name, text);
    return true;
  }
  bool VisitTypedefDecl(TypedefDecl* type) {
    add(type, type->getNameAsString(),
        source_.text.slice(source_.begin(type->getBeginLoc()), end_of(type)).str());
    return true;
  }

 private:
  unsigned end_of(const Decl* declaration) const {
    return source_.begin(Lexer::getLocForEndOfToken(declaration->getEndLoc(), 0, source_.manager,
                                                    source_.context.getLangOpts()));
  }
  // A typedef takes the place of the definition in it; a definition within another is there already.
  void add(const Decl* declaration, const std::string& name, const std::string& text) {
    const unsigned begin = source_.begin(declaration->getBeginLoc()), end = end_of(declaration);
    if (begin >= place_) return;
    for (const Definition& each : found)
      if (begin >= each.begin && end <= each.end) return;
    std::erase_if(found, [&](const Definition& each) {
      return each.name == name || (each.begin >= begin && each.end <= end);
    });
    found.push_back({begin, end, name, text});
  }

  const Source& source_;
  unsigned place_;
};

}  // namespace

std::string declare(const Source& source, QualType type, const std::string& name) {
  PrintingPolicy policy(source.context.getLangOpts());
  policy.AnonymousTagLocations = false;
  std::string result = name;
  type.getUnqualifiedType().getAsStringInternal(result, policy);
  const TagDecl* tag = element_of(type)->getAsTagDecl();
  if (!tag || !has_no_name(tag)) return result;
  const std::size_t at = result.find("(un"), end = result.find(')', at);
  if (at == std::string::npos || end == std::string::npos) return result;
  return result.replace(at, end + 1 - at, name_of_unnamed(source, tag));
}

bool is_local_type(QualType type) {
  const TagDecl* tag = element_of(type)->getAsTagDecl();
  return tag && (tag->getDeclContext()->isFunctionOrMethod() || has_no_name(tag));
}

bool is_hidden(QualType type) {
  const TagDecl* tag = element_of(type)->getAsTagDecl();
  return tag && is_local_type(type) && tag->hasAttrs();
}

std::string types_in_sight(const Source& source, const Region& region) {
  InSight visitor(source, source.begin(region.directive->getBeginLoc()));
  std::string result;
  for (const Item& item : region.items)  // of variables outside of functions
    if (TagDecl* tag = element_of(item.var->getType())->getAsTagDecl();
        tag && has_no_name(tag) && !tag->getDeclContext()->isFunctionOrMethod())
      visitor.VisitTagDecl(tag);
  if (region.function) visitor.TraverseStmt(region.function->getBody());
  for (const Definition& each : visitor.found) result += "  " + each.text + ";\n";
  return result;
}

}  // namespace superstep_cc
