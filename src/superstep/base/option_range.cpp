#include "superstep/base/option_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

#include "superstep/base/error.h"

namespace superstep {
namespace {

template <class T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string described(const NumberRange& range) {
  const std::string kind = range.whole ? "a whole number" : "a number";
  const bool below = std::isfinite(range.high), above = std::isfinite(range.low);
  if (above && below && !range.open_low) return fmt::format("{} from {} to {}", kind, range.low, range.high);
  if (above && range.open_low && below)
    return fmt::format("{} above {}, at most {}", kind, range.low, range.high);
  if (above && range.open_low) return fmt::format("{} above {}", kind, range.low);
  if (above) return fmt::format("{}, {} or more", kind, range.low);
  return below ? fmt::format("{}, at most {}", kind, range.high) : kind;
}

}  // namespace

std::optional<double> finite_number(std::string_view text) {
  const auto value = parse_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> whole_number(std::string_view text) { return parse_all<std::int64_t>(text); }

std::optional<std::int64_t> number_of_bytes(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto count = finite_number(text.substr(0, digits));
  std::string_view unit = text.substr(digits);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  std::string letters(unit);
  for (char& letter : letters) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  constexpr std::string_view prefixes = "KMGT";
  double scale = 1;
  if (const std::size_t power = letters.empty() ? std::string_view::npos : prefixes.find(letters[0]);
      power != std::string_view::npos) {
    const bool binary = letters.size() > 1 && letters[1] == 'I';
    scale = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
    letters.erase(0, binary ? 2 : 1);
  }
  if (!count || (!letters.empty() && letters != "B")) return std::nullopt;
  const double bytes = std::round(*count * scale);
  if (!(bytes >= 1 && bytes < 9e18)) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::string why_not(std::string_view text, const NumberRange& range) {
  const auto whole = range.whole ? whole_number(text) : std::nullopt;
  const auto value = range.whole && whole ? std::optional(static_cast<double>(*whole)) : finite_number(text);
  const bool kind = value && (!range.whole || whole);
  const bool low = value && (range.open_low ? *value > range.low : *value >= range.low);
  if (kind && low && *value <= range.high) return {};
  return fmt::format("must be {}, not '{}'", described(range), text);
}

Range range_option(const Options& options, std::string_view name, double low, double high) {
  const std::string& text = options.text(name);
  const std::size_t dots = text.find("..");
  const std::string_view first = std::string_view(text).substr(0, dots);
  const std::string_view last = dots == std::string::npos ? first : std::string_view(text).substr(dots + 2);
  Range range;
  const auto low_end = finite_number(first), high_end = finite_number(last);
  if (!low_end || !high_end)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is neither a number nor a range written low..high", text),
                fmt::format("option {}", name));
  range = {*low_end, *high_end};
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
