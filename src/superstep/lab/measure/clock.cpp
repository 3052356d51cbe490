#include "superstep/lab/measure/clock.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "superstep/base/statistics.h"

namespace superstep::lab {
namespace {

constexpr int readings = 200;  // for the clock's own resolution and cost: microseconds

class SteadyClock : public Clock {
 public:
  double seconds() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void sleep_until(double when) override {
    // The scheduler wakes late: the last stretch is waited for awake.
    constexpr double awake = 200e-6;
    const double rest = when - seconds();
    if (rest > awake) std::this_thread::sleep_for(std::chrono::duration<double>(rest - awake));
    while (seconds() < when) std::this_thread::yield();
  }
};

}  // namespace

Clock& steady_clock() {
  static SteadyClock clock;
  return clock;
}

ClockQuality clock_quality(Clock& clock) {
  std::vector<double> gaps;
  double smallest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < readings; ++i) {
    const double begun = clock.seconds();
    const double gap = clock.seconds() - begun;
    gaps.push_back(gap);
    if (gap > 0) smallest = std::min(smallest, gap);
  }
  return {.resolution = std::isinf(smallest) ? 0 : smallest, .empty = quantile(gaps, 0.5)};
}

}  // namespace superstep::lab
