// Elapsed time on the monotonic clock. (Measurements that tests put on a clock of their own:
// lab/measure/clock.h.)
#pragma once

#include <chrono>

namespace superstep {

// Seconds since an arbitrary moment, the same for all threads and processes of a machine; never goes back.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs from when it is made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace superstep
