// Functions that regions call, as a tile runs them: one thread, and what they name of the device's globals is
// the tile's.
#pragma once

#include "region.h"

namespace superstep_cc {

// A variable of `declare target` that a function may be given the tile's copy of.
bool is_global_of_device(const clang::VarDecl* var);

// Functions that the region calls, and those call, which need a version of their own; globals that they name
// become items of the region.
void add_functions(Source& source, Region& region);

std::vector<Edit> calls_of_clones(const Source& source, const clang::Stmt* body,
                                  const std::vector<const clang::FunctionDecl*>& clones);
// Prototypes, and the pointers that stand for globals.
std::string declarations_of_clones(const Source& source, const Region& region);
std::string clone_of(Source& source, const clang::FunctionDecl* function, const Region& region);

}  // namespace superstep_cc
