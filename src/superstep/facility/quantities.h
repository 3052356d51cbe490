// Quantities as people write them in files: "12 ms", "8..12 GB/s" (an interval), "100 /s".
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace superstep::facility {

// A value and the interval that holds 80 % of what it may be; where it is exact all three are equal.
struct Amount {
  double value = 0, low = 0, high = 0;

  static Amount exactly(double value) { return {value, value, value}; }
  bool exact() const { return low == high; }
  Amount times(double factor) const { return {value * factor, low * factor, high * factor}; }
};

// In SI: seconds, bytes, bytes per second, events per second, watts, joules.
enum class Dimension { time, data, data_rate, rate, power, energy };

// Of "LOW..HIGH UNIT" the value is the geometric mean. What is wrong is said in words: "has no unit of time
// (ns, us, ms, s, min, h, d)".
std::expected<Amount, std::string> amount_from(std::string_view text, Dimension dimension);

}  // namespace superstep::facility
