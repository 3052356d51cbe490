// Options whose value is a range, as draws take them: "1e4..1e7", or one number for a fixed value.
#pragma once

#include <string_view>

#include "superstep/base/options.h"
#include "superstep/base/random.h"

namespace superstep {

struct Range {
  double low = 0, high = 0;
};

// Throws Error (invalid_argument) when the text is neither, when the ends are swapped, or when one lies
// outside [low, high].
Range range_option(const Options& options, std::string_view name, double low, double high);

double draw_uniform(RandomStream& random, const Range& range);
double draw_log_uniform(RandomStream& random, const Range& range);  // both ends above 0

}  // namespace superstep
