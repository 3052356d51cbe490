// The C text of constructs: tables, outlined bodies, calls of the library.
#pragma once

#include "region.h"

namespace superstep_cc {

struct Emitted {
  std::string functions;  // before the function that has the construct
  std::string call;       // in place of the construct
};
Emitted emit_region(Source& source, const Region& region, int number);

// Nested constructs as one thread runs them: their pragmas gone, private copies declared.
std::vector<Edit> sequential_edits(Source& source, const clang::Stmt* body);

// "static const..." of a list of items as an array, and its name.
std::string emit_items(Source& source, const std::vector<Item>& items, bool all_mapped);
std::string start_of_file();  // before everything else

}  // namespace superstep_cc
