// Metrics by what a loss compares (run/user/metrics.h).
#pragma once

#include "superstep/run/user/metrics.h"

namespace superstep::run {

std::vector<double> measure_numbers(std::span<const std::string> names, const Compared& compared);
std::vector<double> measure_shares(std::span<const std::string> names, const Compared& compared);
std::vector<double> measure_classes(std::span<const std::string> names, const Compared& compared);
std::vector<double> measure_triplets(std::span<const std::string> names, const Compared& compared);
std::vector<double> measure_sequences(std::span<const std::string> names, const Compared& compared);
double kl_divergence(const Compared& compared);
double cosine_similarity(const Compared& compared);

// The probability that what is so has a higher score than what is not, ties by halves: the area under the
// curve of true beside false positives. NaN where there are not both.
struct Ranked {
  double score = 0, weight = 1;
  bool is_so = false;
};
double area_under_curve(std::vector<Ranked> ranked);

}  // namespace superstep::run
