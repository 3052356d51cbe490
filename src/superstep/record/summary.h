// What many samples of one quantity say together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace superstep::record {

struct Summary {
  std::size_t count = 0;
  double median = 0, mean = 0, stddev = 0, min = 0, max = 0;
  double p05 = 0, p95 = 0;  // nearest rank
  double variation = 0;     // stddev / mean
  // An interval that holds the true median, whatever the distribution: between two order statistics (the
  // sign test turned round). Its coverage is at least 95 % from six samples on, and what it is below that.
  // Samples that come in clusters (a busy neighbour, a clock that changes) say less than as many
  // independent ones: the ranks then lie as far apart as those of so many times fewer.
  double low = 0, high = 0, coverage = 0;
  double clustering = 1;              // how many times fewer; 1 where samples look independent
  double drift = 0;                   // median of the last third over that of the first, less one
  std::vector<std::size_t> outliers;  // samples outside median +- 5 x median absolute deviation
};

// All samples count; none is dropped. Zeros of no samples.
Summary summarize(std::span<const double> samples);

// The fewest samples that a latency percentile may be given for: 100 for p90, 1,000 for p99, 10,000 for
// p99.9.
std::size_t samples_needed(double share);

}  // namespace superstep::record
