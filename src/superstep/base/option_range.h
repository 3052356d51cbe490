// Numbers as users write them, with the range they must lie in: one way to read them for every command, every
// "--set name=value" and every METRIC=VALUE. What is no number as a whole, and infinity and nan, are refused.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "superstep/base/options.h"
#include "superstep/base/random.h"

namespace superstep {

// A finite number: "3", "0.5", "1e-3". Nothing of "0,5", "1x", "inf", "nan", "" and " 1".
std::optional<double> finite_number(std::string_view text);
// "12"; nothing of "1.5", "1e3", "-0x1" and what does not fit.
std::optional<std::int64_t> whole_number(std::string_view text);
// "200M", "2G", "1.5 GB", "4KiB", "4096": K is 1000, Ki 1024; above 0.
std::optional<std::int64_t> number_of_bytes(std::string_view text);

// What a number must be, for those who check texts before they read them.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool open_low = false;  // above `low`, not at it
  bool whole = false;
};
// Empty when the text is such a number, else what it must be: "must be a whole number, 1 or more, not '0'".
std::string why_not(std::string_view text, const NumberRange& range);

struct Range {
  double low = 0, high = 0;
};

// A range as draws take them: "1e4..1e7", or one number for a fixed value. Throws Error (invalid_argument)
// when the text is neither, when the ends are swapped, or when one lies outside [low, high].
Range range_option(const Options& options, std::string_view name, double low, double high);

double draw_uniform(RandomStream& random, const Range& range);
double draw_log_uniform(RandomStream& random, const Range& range);  // both ends above 0

}  // namespace superstep
