// What calibration learns of a value: how its elements are spread, and which range a byte should span.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/transform/precision/quantize.h"

namespace superstep::run {

// How much of the tails is left out.
enum class RangeMethod : std::uint8_t {
  minmax,      // nothing
  percentile,  // a share of the elements on either side
  entropy,     // what changes the distribution least: S. Migacz, "8-bit inference with TensorRT", GTC 2017
};
const char* name_of(RangeMethod method);
RangeMethod range_method_from_name(std::string_view name);  // throws Error (invalid_argument), nearest name

// Counts of elements in equal bins over a range that is known before.
class RangeHistogram {
 public:
  static constexpr std::size_t bin_count = 2048;

  // Throws Error (invalid_argument) when the range is upside down or not finite.
  RangeHistogram(double low, double high);

  void add(std::span<const float> values);  // what lies outside counts in the outermost bin

  double low() const { return low_; }
  double high() const { return high_; }
  std::uint64_t count() const { return total_; }
  std::span<const std::uint64_t> bins() const { return bins_; }

  // `share`: of the elements that lie inside, for percentile (0.9999).
  transform::ValueRange range(RangeMethod method, double share) const;

 private:
  double edge(std::size_t bin) const { return low_ + width_ * static_cast<double>(bin); }
  transform::ValueRange inner_range(double share) const;
  transform::ValueRange closest_distribution() const;
  std::vector<double> counts_by_magnitude(double largest) const;

  double low_, high_, width_;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> bins_;
};

}  // namespace superstep::run
