#include "scan.h"

#include <cstdio>
#include <regex>
#include <sstream>

namespace superstep_cc {

bool scan_directives(const std::string& text) {
  static const std::regex marker("# ([0-9]+) \"([^\"]*)\".*");
  static const std::regex moved("\\b(to|from)\\s*\\(\\s*(present\\s*,\\s*)?iterator\\b");
  std::istringstream lines(text);
  std::string file;
  long number = 0;
  bool fine = true;
  for (std::string line; std::getline(lines, line); ++number) {
    std::smatch found;
    if (line.starts_with("# ") && std::regex_match(line, found, marker)) {
      number = std::stol(found[1]) - 1;
      file = found[2];
    } else if (line.find("#pragma omp target update") != std::string::npos &&
               std::regex_search(line, found, moved)) {
      std::fprintf(stderr,
                   "%s:%ld:%ld: refused: clause: motion with iterator or mapper; write the sections out\n",
                   file.c_str(), number, static_cast<long>(found.position()) + 1);
      fine = false;
    }
  }
  return fine;
}

}  // namespace superstep_cc
