// List items of map, to and from clauses as text: where they are and how long.
#pragma once

#include "region.h"

namespace superstep_cc {

const clang::VarDecl* base_variable(
    const clang::Expr* expression);  // null: not a variable or a section of one
// `in_pieces`: the outermost section may leave out elements, as those of updates may.
void map_memory(Source& source, const clang::Expr* expression, Item& item, bool in_pieces = false);
std::vector<Item> map_items(Source& source, const clang::OMPMapClause* clause);
// Of an update: what it moves to, and from, the device.
std::vector<Item> update_items(Source& source, const clang::OMPTargetUpdateDirective* directive);
// The loops that are dealt, when they are nested tightly in constructs; or one that makes tasks and does nothing
// else.
struct Nest {
  const clang::Stmt* loop = nullptr;  // null: there is none
  std::size_t depth = 1;
};
Nest read_nested(Source& source, Region& region);

}  // namespace superstep_cc
