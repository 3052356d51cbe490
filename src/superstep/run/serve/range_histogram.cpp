#include "superstep/run/serve/range_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

struct Named {
  const char* name;
  RangeMethod method;
};
constexpr std::array methods = {Named{"percentile", RangeMethod::percentile},
                                Named{"entropy", RangeMethod::entropy}, Named{"minmax", RangeMethod::minmax}};

// The counts of `reference` when `levels` values stand for all of them: each level's count is spread evenly
// over its bins that are not empty.
std::vector<double> requantized(std::span<const double> reference, std::size_t levels) {
  std::vector<double> result(reference.size(), 0.0);
  const std::size_t size = reference.size();
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t begin = level * size / levels, end = (level + 1) * size / levels;
    double sum = 0;
    std::size_t filled = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sum += reference[i];
      filled += reference[i] > 0;
    }
    for (std::size_t i = begin; i < end; ++i)
      if (reference[i] > 0) result[i] = sum / static_cast<double>(filled);
  }
  return result;
}

// Kullback-Leibler divergence of two counts, each over its own total. Where q has nothing but p has, q takes
// a ten-thousandth of an element: dropping such bins would reward leaving things out.
double divergence(std::span<const double> p, std::span<const double> q) {
  constexpr double trace = 1e-4;
  double total_p = 0, total_q = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    total_p += p[i];
    total_q += std::max(q[i], p[i] > 0 ? trace : 0);
  }
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) sum += p[i] / total_p * std::log(p[i] / total_p * total_q / std::max(q[i], trace));
  return sum;
}

}  // namespace

const char* name_of(RangeMethod method) {
  for (const Named& entry : methods)
    if (entry.method == method) return entry.name;
  return "";
}

RangeMethod range_method_from_name(std::string_view name) {
  std::vector<std::string> names;
  for (const Named& entry : methods) {
    if (name == entry.name) return entry.method;
    names.emplace_back(entry.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a way to choose ranges", name),
              "--ranges", unknown_name_hint(name, names));
}

RangeHistogram::RangeHistogram(double low, double high)
    : low_(low), high_(high), width_((high - low) / static_cast<double>(bin_count)), bins_(bin_count, 0) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high)
    throw Error(ErrorCode::invalid_argument, fmt::format("a histogram from {} to {} has no bins", low, high));
}

void RangeHistogram::add(std::span<const float> values) {
  constexpr auto last = static_cast<double>(bin_count - 1);
  for (const float value : values) {
    const double place = width_ > 0 ? (static_cast<double>(value) - low_) / width_ : 0;
    ++bins_[static_cast<std::size_t>(std::clamp(std::floor(place), 0.0, last))];
  }
  total_ += values.size();
}

transform::ValueRange RangeHistogram::range(RangeMethod method, double share) const {
  if (total_ == 0 || width_ <= 0 || method == RangeMethod::minmax) return {low_, high_};
  return method == RangeMethod::percentile ? inner_range(share) : closest_distribution();
}

// Leaves out at most half of 1 - share of the elements on either side.
transform::ValueRange RangeHistogram::inner_range(double share) const {
  const double spare = (1 - share) / 2 * static_cast<double>(total_);
  std::size_t first = 0, last = bin_count;
  for (double below = 0; first + 1 < last; ++first) {
    below += static_cast<double>(bins_[first]);
    if (below > spare) break;
  }
  for (double above = 0; last > first + 1; --last) {
    above += static_cast<double>(bins_[last - 1]);
    if (above > spare) break;
  }
  return {edge(first), edge(last)};
}

// Counts by |value| in bins of equal width up to `largest`.
std::vector<double> RangeHistogram::counts_by_magnitude(double largest) const {
  std::vector<double> counts(bin_count, 0.0);
  for (std::size_t bin = 0; bin < bin_count; ++bin) {
    const double middle = std::abs(edge(bin) + width_ / 2);
    const auto place = static_cast<std::size_t>(middle / largest * static_cast<double>(bin_count));
    counts[std::min(place, bin_count - 1)] += static_cast<double>(bins_[bin]);
  }
  return counts;
}

// The magnitude at which to cut such that bytes keep most of the distribution. One sign has all 256 levels to
// itself, two share them.
transform::ValueRange RangeHistogram::closest_distribution() const {
  const double largest = std::max(std::abs(low_), std::abs(high_));
  const std::size_t levels = low_ < 0 && high_ > 0 ? 128 : 256;
  const std::vector<double> counts = counts_by_magnitude(largest);
  double least = std::numeric_limits<double>::infinity();
  std::size_t chosen = bin_count;
  for (std::size_t kept = levels; kept <= bin_count; kept += 16) {
    std::vector<double> reference(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(kept));
    const std::vector<double> inside = requantized(reference, levels);
    for (std::size_t i = kept; i < bin_count; ++i) reference.back() += counts[i];  // what is cut off
    if (const double found = divergence(reference, inside); found < least) {
      least = found;
      chosen = kept;
    }
  }
  const double cut = largest * static_cast<double>(chosen) / static_cast<double>(bin_count);
  return {std::max(low_, -cut), std::min(high_, cut)};
}

}  // namespace superstep::run
