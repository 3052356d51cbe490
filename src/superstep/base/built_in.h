// A file of facts whose text was put into the program when it was built (cmake/EmbedFacts.cmake).
#pragma once

#include <span>
#include <string_view>

namespace superstep {

struct BuiltIn {
  std::string_view id;  // the file's name without its ending
  std::string_view text;
};

}  // namespace superstep
