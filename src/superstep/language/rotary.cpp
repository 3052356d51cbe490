#include "superstep/language/rotary.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::language {
namespace {

double stretched(double frequency, const RotaryScaling& s) {
  if (s.kind == RotaryScaling::Kind::none) return frequency;
  if (s.kind == RotaryScaling::Kind::linear) return frequency / s.factor;
  const double turn = 2 * std::numbers::pi / frequency;  // positions of a whole turn
  if (turn < s.original_length / s.high) return frequency;
  if (turn > s.original_length / s.low) return frequency / s.factor;
  const double share = (s.original_length / turn - s.low) / (s.high - s.low);
  return (1 - share) * frequency / s.factor + share * frequency;
}

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no scaling of positions", text),
              "rope-scaling", "none, linear:FACTOR or llama3:FACTOR,LOW,HIGH,LENGTH");
}

std::vector<double> numbers_of(const std::string& list, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& part : split(list, ',')) {
    char* end = nullptr;
    const double value = std::strtod(part.c_str(), &end);
    if (part.empty() || *end != '\0' || !(value > 0) || !std::isfinite(value)) refuse(text);
    numbers.push_back(value);
  }
  return numbers;
}

}  // namespace

std::vector<double> rotary_frequencies(std::int64_t head_size, double base, const RotaryScaling& scaling) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < head_size / 2; ++i) {
    const double exponent = -2 * static_cast<double>(i) / static_cast<double>(head_size);
    frequencies.push_back(stretched(std::pow(base, exponent), scaling));
  }
  return frequencies;
}

RotaryScaling rotary_scaling_from_text(const std::string& text) {
  if (text == "none") return {};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(text);
  const std::string kind = text.substr(0, colon);
  const std::vector<double> numbers = numbers_of(text.substr(colon + 1), text);
  if (kind == "linear" && numbers.size() == 1)
    return {.kind = RotaryScaling::Kind::linear, .factor = numbers[0]};
  if (kind != "llama3" || numbers.size() != 4 || numbers[1] >= numbers[2]) refuse(text);
  return {RotaryScaling::Kind::llama3, numbers[0], numbers[1], numbers[2], numbers[3]};
}

}  // namespace superstep::language
