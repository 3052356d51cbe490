#include "superstep/graph/text_element.h"

#include <fmt/format.h>

namespace superstep::graph {
namespace {

// Decimals get a mark that tells them from an integer.
std::string with_mark(std::string digits) {
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}

template <class T>
std::string wide_text(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return with_mark(fmt::format("{}", value));
}

// 16-bit formats have few digits: the fewest that round back are found by trying.
template <class T>
std::string narrow_text(T value) {
  const float wide = static_cast<float>(value);
  if (!std::isfinite(wide)) return wide_text(wide);
  for (int digits = 1; digits < 9; ++digits) {
    std::string text = fmt::format("{:.{}g}", wide, digits);
    T back;
    if (parse_float(text, back) && same_bits(back, value)) return with_mark(std::move(text));
  }
  return wide_text(wide);
}

template <class T>
bool parse_wide(std::string_view text, T& value) {
  if (text == "nan")
    value = std::numeric_limits<T>::quiet_NaN();
  else if (text == "inf")
    value = std::numeric_limits<T>::infinity();
  else if (text == "-inf")
    value = -std::numeric_limits<T>::infinity();
  else {
    const char* end = text.data() + text.size();
    const auto [stopped, code] = std::from_chars(text.data(), end, value);
    return code == std::errc() && stopped == end && std::isfinite(value);
  }
  return true;
}

template <class T>
bool parse_narrow(std::string_view text, T& value) {
  float wide;
  if (!parse_wide(text, wide)) return false;
  value = T(wide);
  return true;
}

}  // namespace

std::string float_text(double value) { return wide_text(value); }
std::string float_text(float value) { return wide_text(value); }
std::string float_text(f16 value) { return narrow_text(value); }
std::string float_text(bf16 value) { return narrow_text(value); }

bool parse_float(std::string_view text, double& value) { return parse_wide(text, value); }
bool parse_float(std::string_view text, float& value) { return parse_wide(text, value); }
bool parse_float(std::string_view text, f16& value) { return parse_narrow(text, value); }
bool parse_float(std::string_view text, bf16& value) { return parse_narrow(text, value); }

}  // namespace superstep::graph
