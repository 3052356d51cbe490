// Checks of numbers on the command line.
#include "superstep/base/option_range.h"
#include "superstep/cli/command.h"

namespace superstep::cli {
namespace {

CLI::Validator number_in(const NumberRange& range) {
  return CLI::Validator([range](const std::string& text) { return why_not(text, range); },
                        "");  // the help names the kind of number already
}

}  // namespace

CLI::Validator positive() { return number_in({.low = 0, .open_low = true}); }
CLI::Validator not_negative() { return number_in({.low = 0}); }
CLI::Validator number_from(double low, double high) { return number_in({.low = low, .high = high}); }

CLI::Validator whole_number_from(std::int64_t low, std::int64_t high) {
  NumberRange range{.low = static_cast<double>(low), .whole = true};
  if (high != std::numeric_limits<std::int64_t>::max()) range.high = static_cast<double>(high);
  return number_in(range);
}

CLI::Validator bytes() {
  return CLI::Validator(
      [](const std::string& text) {
        return number_of_bytes(text) ? std::string()
                                     : "must be a number of bytes above 0, as 200M or 2G, not '" + text + "'";
      },
      "");
}

}  // namespace superstep::cli
