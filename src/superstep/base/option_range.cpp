#include "superstep/base/option_range.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "superstep/base/error.h"

namespace superstep {
namespace {

bool parse_number(std::string_view text, double& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

Range range_option(const Options& options, std::string_view name, double low, double high) {
  const std::string& text = options.text(name);
  const std::size_t dots = text.find("..");
  const std::string_view first = std::string_view(text).substr(0, dots);
  const std::string_view last = dots == std::string::npos ? first : std::string_view(text).substr(dots + 2);
  Range range;
  if (!parse_number(first, range.low) || !parse_number(last, range.high))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is neither a number nor a range written low..high", text),
                fmt::format("option {}", name));
  if (!(range.low <= range.high && range.low >= low && range.high <= high))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a rising range in [{}, {}]", text, low, high),
                fmt::format("option {}", name));
  return range;
}

double draw_uniform(RandomStream& random, const Range& range) {
  return random.uniform(range.low, range.high);
}

double draw_log_uniform(RandomStream& random, const Range& range) {
  return std::exp(random.uniform(std::log(range.low), std::log(range.high)));
}

}  // namespace superstep
