#include "superstep/record/summary.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/statistics.h"

namespace superstep::record {
namespace {

constexpr double wanted_coverage = 0.95;  // of an interval of the median
constexpr double outlier_deviations = 5;  // times the median distance from the median; chosen
constexpr double two_sided = 1.96;        // standard deviations of a normal distribution that hold 95 %
constexpr std::size_t blocks = 10;
constexpr double notable_clustering = 2;  // independent samples reach it in about 3 of 100 cases

struct Ranks {
  std::size_t low, high;  // positions in the sorted samples
  double coverage;
};

// The number of samples below the true median is binomial with p = 1/2. The interval [x(k), x(n-1-k)]
// (counting from 0) misses it when at most k lie on one side: with probability 2 P(B <= k).
Ranks median_ranks(std::size_t n) {
  const double size = static_cast<double>(n);
  double tail = 0;
  Ranks best{0, n - 1, 1 - 2 * std::pow(0.5, size)};
  for (std::size_t k = 0; 2 * k + 1 < n; ++k) {
    const double at = static_cast<double>(k);
    tail += std::exp(std::lgamma(size + 1) - std::lgamma(at + 1) - std::lgamma(size - at + 1) -
                     size * std::log(2.0));
    if (1 - 2 * tail < wanted_coverage) break;
    best = {k, n - 1 - k, 1 - 2 * tail};
  }
  return best;
}

// Of independent samples, those of a block of L that lie below the median are binomial: their variance is
// L / 4. How many times larger it is, over ten blocks in the order of time, is how many times fewer
// independent samples there are.
double find_clustering(std::span<const double> samples, double median) {
  const std::size_t length = samples.size() / blocks;
  if (length < 2) return 1;
  double squares = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    double below = 0;
    for (double sample : samples.subspan(b * length, length))
      below += sample < median ? 1 : sample == median ? 0.5 : 0;
    const double distance = below - static_cast<double>(length) / 2;
    squares += distance * distance;
  }
  const double ratio = squares / blocks / (static_cast<double>(length) / 4);
  return ratio > notable_clustering ? ratio : 1;
}

// The same ranks by the normal limit, for the variance that clustered samples have. Clustering is at most the
// length of a block, n / 10, so that the lower rank is at least .19 n.
Ranks clustered_ranks(std::size_t n, double clustering) {
  const double size = static_cast<double>(n);
  const auto low = static_cast<std::size_t>(size / 2 - two_sided * std::sqrt(size * clustering) / 2);
  return {low, n - 1 - low, wanted_coverage};
}

double deviation(std::span<const double> samples, double mean) {
  if (samples.size() < 2) return 0;
  double squares = 0;
  for (double sample : samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / static_cast<double>(samples.size() - 1));
}

std::vector<std::size_t> find_outliers(std::span<const double> samples, double median) {
  std::vector<double> distances;
  for (double sample : samples) distances.push_back(std::abs(sample - median));
  const double limit = outlier_deviations * quantile(distances, 0.5);
  std::vector<std::size_t> outliers;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (distances[i] > limit) outliers.push_back(i);
  return outliers;
}

double find_drift(std::span<const double> samples) {
  const std::size_t third = samples.size() / 3;
  if (third == 0) return 0;
  const double first = quantile(samples.first(third), 0.5), last = quantile(samples.last(third), 0.5);
  return first != 0 ? last / first - 1 : 0;
}

}  // namespace

// Ten samples beyond the percentile: fewer say little of it. Chosen.
std::size_t samples_needed(double share) {
  return share > 0.99 ? 10000 : share > 0.9 ? 1000 : share > 0.5 ? 100 : 1;
}

Summary summarize(std::span<const double> samples) {
  Summary summary;
  summary.count = samples.size();
  if (samples.empty()) return summary;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  summary.median = quantile(sorted, 0.5);
  summary.mean = mean(sorted);
  summary.stddev = deviation(sorted, summary.mean);
  summary.variation = summary.mean != 0 ? summary.stddev / summary.mean : 0;
  summary.min = sorted.front();
  summary.max = sorted.back();
  // What nine samples in ten lie between.
  summary.p05 = nearest_rank(sorted, 0.05);
  summary.p95 = nearest_rank(sorted, 0.95);
  summary.clustering = find_clustering(samples, summary.median);
  const Ranks ranks = summary.clustering > 1 ? clustered_ranks(sorted.size(), summary.clustering)
                                             : median_ranks(sorted.size());
  summary.low = sorted[ranks.low];
  summary.high = sorted[ranks.high];
  summary.coverage = ranks.coverage;
  summary.drift = find_drift(samples);
  summary.outliers = find_outliers(samples, summary.median);
  return summary;
}

}  // namespace superstep::record
