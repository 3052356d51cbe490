// Checks of numbers on the command line.
#include <cstdlib>

#include "superstep/cli/command.h"

namespace superstep::cli {
namespace {

CLI::Validator number_where(const char* what, bool (*holds)(double)) {
  return CLI::Validator(
      [what, holds](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool is_number = !text.empty() && *end == '\0';
        return is_number && holds(value) ? std::string() : "must be " + std::string(what) + ", not " + text;
      },
      "");  // the help names the kind of number already
}

}  // namespace

CLI::Validator positive() {
  return number_where("a number above 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return number_where("a number, 0 or more", [](double value) { return value >= 0; });
}

}  // namespace superstep::cli
