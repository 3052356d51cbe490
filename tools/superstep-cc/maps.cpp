#include "maps.h"

#include "superstep/openmp/program/abi.h"

namespace superstep_cc {

using namespace clang;

const VarDecl* base_variable(const Expr* expression) {
  expression = expression->IgnoreParenImpCasts();
  if (const auto* section = dyn_cast<ArraySectionExpr>(expression)) return base_variable(section->getBase());
  if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(expression)) {
    const Expr* base = subscript->getBase()->IgnoreParenImpCasts();
    // A pointer read from an array leads elsewhere.
    if (!isa<DeclRefExpr>(base) && !base->getType()->isArrayType()) return nullptr;
    return base_variable(base);
  }
  const auto* reference = dyn_cast<DeclRefExpr>(expression);
  return reference ? dyn_cast<VarDecl>(reference->getDecl()) : nullptr;
}

namespace {

struct Dimension {
  std::string lower = "0", length;  // empty: one element; "-": to the end
};

// From the base outwards.
void dimensions(Source& source, const Expr* expression, std::vector<Dimension>& result) {
  expression = expression->IgnoreParenImpCasts();
  if (const auto* section = dyn_cast<ArraySectionExpr>(expression)) {
    dimensions(source, section->getBase(), result);
    Dimension dimension;
    if (section->getLowerBound()) dimension.lower = source.words(section->getLowerBound());
    dimension.length = section->getLength()                    ? source.words(section->getLength())
                       : section->getColonLocFirst().isValid() ? "-"
                                                               : "";
    result.push_back(dimension);
  } else if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(expression)) {
    dimensions(source, subscript->getBase(), result);
    result.push_back({source.words(subscript->getIdx()), ""});
  }
}

}  // namespace

void map_memory(Source& source, const Expr* expression, Item& item) {
  std::vector<Dimension> all;
  dimensions(source, expression, all);
  const std::string name = item.var->getNameAsString();
  const std::string place = quoted(source.file(expression->getBeginLoc())) + ", " +
                            std::to_string(source.line(expression->getBeginLoc()));
  item.line = source.line(expression->getBeginLoc());
  if (all.empty()) {
    item.address = "(void *)&(" + name + ")";
    item.bytes = "(long)sizeof(" + name + ")";
    return;
  }
  std::string element = name, bytes;
  bool counted = false;  // a dimension of several elements was seen: those inside it must be whole
  for (const Dimension& dimension : all) {
    const std::string row = element;
    const std::string extent = "(long)(sizeof(" + row + ") / sizeof((" + row + ")[0]))";
    const std::string length = dimension.length.empty() ? "1L"
                               : dimension.length == "-"
                                   ? "(" + extent + " - (long)(" + dimension.lower + "))"
                                   : "(long)(" + dimension.length + ")";
    element = "(" + element + ")[" + dimension.lower + "]";
    if (!counted)
      bytes = length + " * (long)sizeof(" + element + ")";
    else
      bytes = "sst_whole_rows(" + bytes + ", (long)(" + dimension.lower + "), " + length + ", " + extent +
              ", " + place + ")";
    counted = counted || !dimension.length.empty();
  }
  item.address = "(void *)&(" + element + ")";
  item.bytes = bytes;
}

namespace {

Item item_of_expression(Source& source, const Expr* expression, int kind) {
  Item item;
  item.var = base_variable(expression);
  item.kind = kind;
  if (!item.var) {
    source.refuse(expression->getBeginLoc(),
                  "clause: " + source.words(expression) +
                      " is not a variable or a section of one; map a pointer variable's section");
    return item;
  }
  map_memory(source, expression, item);
  if (item.var->getType().isConstant(source.context)) item.kind |= sst_constant;
  return item;
}

}  // namespace

std::vector<Item> map_items(Source& source, const OMPMapClause* clause) {
  int kind = 0;
  switch (clause->getMapType()) {
    case OMPC_MAP_to: kind = sst_to; break;
    case OMPC_MAP_from: kind = sst_from; break;
    case OMPC_MAP_tofrom: kind = sst_to | sst_from; break;
    case OMPC_MAP_delete: kind = sst_delete; break;
    case OMPC_MAP_alloc:
    case OMPC_MAP_release: break;
    default: kind = sst_to | sst_from;
  }
  for (const OpenMPMapModifierKind modifier : clause->getMapTypeModifiers()) {
    if (modifier == OMPC_MAP_MODIFIER_always) kind |= sst_always;
    if (modifier == OMPC_MAP_MODIFIER_present) kind |= sst_must_be_present;
    if (modifier == OMPC_MAP_MODIFIER_iterator || modifier == OMPC_MAP_MODIFIER_mapper) {
      source.refuse(clause->getBeginLoc(), "clause: map with iterator or mapper; write the sections out");
      return {};
    }
  }
  std::vector<Item> result;
  for (const Expr* expression : clause->varlists())
    if (Item item = item_of_expression(source, expression, kind); item.var) result.push_back(item);
  return result;
}

std::vector<Item> update_items(Source& source, const OMPTargetUpdateDirective* directive) {
  std::vector<Item> result;
  const auto add = [&](const auto* clause, int kind) {
    for (const OpenMPMotionModifierKind modifier : clause->getMotionModifiers()) {
      if (modifier == OMPC_MOTION_MODIFIER_present) kind |= sst_must_be_present;
      if (modifier == OMPC_MOTION_MODIFIER_mapper)
        source.refuse(clause->getBeginLoc(),
                      "clause: motion with iterator or mapper; write the sections out");
    }
    for (const Expr* expression : clause->varlists())
      if (Item item = item_of_expression(source, expression, kind); item.var) result.push_back(item);
  };
  for (const auto* clause : directive->getClausesOfKind<OMPToClause>()) add(clause, sst_to);
  for (const auto* clause : directive->getClausesOfKind<OMPFromClause>()) add(clause, sst_from);
  return result;
}

}  // namespace superstep_cc
