// One C file as a C file without target constructs.
#pragma once

#include <string>
#include <vector>

namespace superstep_cc {

struct Translation {
  bool done = false;
  std::string text;
  std::string explanation;  // a line a region: what becomes of it
  std::string warnings;     // a line for all whose cycles are counted by guess
};
// `arguments`: -I, -D and the like. What is wrong, or refused, has been printed to standard error.
Translation translate(const std::string& file, const std::vector<std::string>& arguments);

}  // namespace superstep_cc
