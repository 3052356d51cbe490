// Which elements of which arrays an inspector has to find, and what their numbers depend on.
#pragma once

#include "walk.h"

namespace superstep_cc {

// Items that are only read and, somewhere, by a subscript that is no sum of counters. None when an inspector
// cannot find their elements: the body asks who runs it, calls functions that are not known, or writes what
// decides.
std::set<int> gathered_items(const Walk& walk, const clang::Stmt* body);

// Items whose values reach a subscript, a condition or a divisor, perhaps by way of local variables.
std::set<int> steering_items(const Region& region, const clang::Stmt* body);

}  // namespace superstep_cc
