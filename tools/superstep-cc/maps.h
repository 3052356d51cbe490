// List items of map, to and from clauses as text: where they are and how long.
#pragma once

#include "region.h"

namespace superstep_cc {

const clang::VarDecl* base_variable(
    const clang::Expr* expression);  // null: not a variable or a section of one
void map_memory(Source& source, const clang::Expr* expression, Item& item);
std::vector<Item> map_items(Source& source, const clang::OMPMapClause* clause);
// Of an update: what it moves to, and from, the device.
std::vector<Item> update_items(Source& source, const clang::OMPTargetUpdateDirective* directive);
// The construct that has the loops when they are nested tightly in others; null: there is none.
const clang::OMPExecutableDirective* read_nested(Source& source, Region& region);

}  // namespace superstep_cc
