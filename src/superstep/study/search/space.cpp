#include "superstep/study/search/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/text.h"

namespace superstep::study {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' {}", text, why), "--set",
              "NAME=LOW..HIGH, NAME=LOW..HIGH:log or NAME=A,B,C");
}

double number_in(const std::string& text, const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value)) refuse(text, "has '" + word + "' for a number");
  return value;
}

bool is_whole(const std::string& word) {
  const std::string digits = word.starts_with('-') ? word.substr(1) : word;
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
}

std::string in_words(const Parameter& parameter, double value) {
  if (parameter.kind == Parameter::Kind::whole) return fmt::format("{}", std::llround(value));
  return fmt::format("{:.4g}", value);
}

void take_range(Parameter& parameter, const std::string& text, std::string values) {
  if (const std::size_t colon = values.rfind(':'); colon != std::string::npos) {
    if (values.substr(colon + 1) != "log") refuse(text, "ends in what is not ':log'");
    parameter.log = true;
    values.resize(colon);
  }
  const std::size_t dots = values.find("..");
  const std::string low = values.substr(0, dots), high = values.substr(dots + 2);
  parameter.low = number_in(text, low);
  parameter.high = number_in(text, high);
  parameter.kind = is_whole(low) && is_whole(high) ? Parameter::Kind::whole : Parameter::Kind::real;
  if (parameter.low >= parameter.high) refuse(text, "has a range that does not rise");
  if (parameter.log && parameter.low <= 0) refuse(text, "has a logarithm of what is not above 0");
}

void take_choices(Parameter& parameter, const std::string& text, const std::string& values) {
  parameter.choices = split(values, ',');
  for (const std::string& choice : parameter.choices) {
    if (choice.empty()) refuse(text, "has an empty value");
    if (std::ranges::count(parameter.choices, choice) > 1) refuse(text, "has " + choice + " twice");
  }
}

}  // namespace

std::vector<std::string> Parameter::extremes() const {
  if (kind == Kind::choice) return choices;
  return {in_words(*this, low), in_words(*this, high)};
}

bool Parameter::admits(const std::string& value) const {
  if (kind == Kind::choice) return std::ranges::find(choices, value) != choices.end();
  if (kind == Kind::whole && !is_whole(value)) return false;
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  return !value.empty() && *end == '\0' && low <= number && number <= high;
}

Parameter parse_parameter(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse(text, "is no NAME=VALUES");
  Parameter parameter{.name = text.substr(0, equals), .choices = {}};
  const std::string values = text.substr(equals + 1);
  // A path may have two dots in it; a range begins with a number.
  const bool range = values.find("..") != std::string::npos &&
                     std::string("0123456789.-+").find(values.front()) != std::string::npos &&
                     values.find('/') == std::string::npos;
  if (range)
    take_range(parameter, text, values);
  else
    take_choices(parameter, text, values);
  return parameter;
}

std::string drawn(const Parameter& parameter, std::uint64_t seed, std::int64_t number, std::size_t index) {
  constexpr std::uint32_t purpose = 5200;  // of streams: chosen, apart from those of data and weights
  RandomStream random(seed, static_cast<std::uint64_t>(number), purpose + static_cast<std::uint32_t>(index));
  if (parameter.kind == Parameter::Kind::choice)
    return parameter.choices[random.below(parameter.choices.size())];
  // Whole numbers are the middles of intervals of length one, so that both ends are as likely as the others.
  const double half = parameter.kind == Parameter::Kind::whole ? 0.5 : 0;
  double low = parameter.low - half, high = parameter.high + half;
  if (parameter.log) low = std::log(low), high = std::log(high);
  const double at = random.uniform(low, high), value = parameter.log ? std::exp(at) : at;
  return in_words(parameter, std::clamp(value, parameter.low, parameter.high));
}

std::string range_words(const Parameter& parameter) {
  if (parameter.kind == Parameter::Kind::choice) return join(parameter.choices, ", ");
  return fmt::format("{} to {}{}", in_words(parameter, parameter.low), in_words(parameter, parameter.high),
                     parameter.log ? " (log)" : "");
}

}  // namespace superstep::study
