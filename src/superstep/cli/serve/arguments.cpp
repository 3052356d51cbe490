#include "superstep/cli/serve/arguments.h"

#include "superstep/base/option_range.h"

namespace superstep::cli {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

std::size_t bytes_of(const std::string& text) {
  return static_cast<std::size_t>(number_of_bytes(text).value_or(0));
}

}  // namespace superstep::cli
