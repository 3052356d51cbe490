// Histograms of times and of sizes with fixed edges, as Prometheus has them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace superstep::edge {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

// Edges 10 us x 1.5^k: from what a call costs to 14 s in steps that a percentile is good enough within.
class Durations {
 public:
  static constexpr std::size_t edges = 36;
  static double edge(std::size_t index) {  // seconds
    double value = 10e-6;
    for (std::size_t i = 0; i < index; ++i) value *= 1.5;
    return value;
  }

  void add(Nanoseconds time, std::uint64_t times = 1) {
    static const std::array<double, edges> all = [] {
      std::array<double, edges> values{};
      for (std::size_t i = 0; i < edges; ++i) values[i] = edge(i);
      return values;
    }();
    const double seconds = std::chrono::duration<double>(time).count();
    counts_[static_cast<std::size_t>(std::ranges::lower_bound(all, seconds) - all.begin())] += times;
    count_ += times;
    nanoseconds_ += static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count())) * times;
  }

  // Of edge `index`, and at `edges` of everything beyond the last.
  std::uint64_t in(std::size_t index) const { return counts_[index]; }
  std::uint64_t count() const { return count_; }
  std::uint64_t nanoseconds() const { return nanoseconds_; }

  // Seconds that a share of all are below: the edge above it. 0 where there are none.
  double quantile(double share) const {
    const double wanted = share * static_cast<double>(count_);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < edges; ++i)
      if (below += counts_[i]; static_cast<double>(below) >= wanted && below > 0) return edge(i);
    return count_ == 0 ? 0 : edge(edges - 1);
  }

 private:
  std::array<std::uint64_t, edges + 1> counts_{};
  std::uint64_t count_ = 0, nanoseconds_ = 0;
};

}  // namespace superstep::edge
