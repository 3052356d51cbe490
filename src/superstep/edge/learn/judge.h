// Whether one model is better than another, by the errors of both on the same samples.
#pragma once

#include <cstdint>
#include <span>

namespace superstep::edge {

// The mean of a - b that 95 % of `draws` resamplings with replacement exceed (one-sided, paired).
double lower_bound_of_gain(std::span<const double> before, std::span<const double> after, std::uint64_t seed,
                           int draws = 1000);
// The standard error of the mean of a - b.
double standard_error_of_gain(std::span<const double> before, std::span<const double> after);
// By more than two of these.
bool is_worse(std::span<const double> now, std::span<const double> before);

}  // namespace superstep::edge
