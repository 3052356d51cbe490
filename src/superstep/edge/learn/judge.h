// How far a model's answers are from labels, and whether one model is better than another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/edge/learn/scan.h"
#include "superstep/edge/model/version.h"

namespace superstep::edge {

// What the version answers to every pattern (as log(1 + counts)), one plane each: its last output.
std::vector<float> answers_to(Version& version, std::span<const LearnSample> samples);

// The mean distance of phases in the middle `crop` x `crop` px of each window, as angles: one value a sample.
std::vector<double> phase_errors(std::span<const float> answers, std::span<const LearnSample> samples,
                                 std::int64_t crop);

// The angle by which labels must be turned to have the same mean as the answers: a reconstruction is known up
// to a constant phase.
double turn_between(std::span<const float> answers, const LearnScan& scan, std::int64_t crop);
void turn(LearnScan& scan, double angle);

// The mean of a - b that 95 % of `draws` resamplings with replacement exceed (one-sided, paired).
double lower_bound_of_gain(std::span<const double> before, std::span<const double> after, std::uint64_t seed,
                           int draws = 1000);
// The standard error of the mean of a - b.
double standard_error_of_gain(std::span<const double> before, std::span<const double> after);
// By more than two of these.
bool is_worse(std::span<const double> now, std::span<const double> before);

}  // namespace superstep::edge
