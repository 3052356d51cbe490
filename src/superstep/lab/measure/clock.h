// The clock that measurements are made with. Tests give one of their own, on which time is what they say.
#pragma once

namespace superstep::lab {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() = 0;                  // since an arbitrary moment; never goes back
  virtual void sleep_until(double seconds) = 0;  // returns at once when that has passed
};

Clock& steady_clock();  // the system's monotonic clock

// What a measurement cannot see below. Reported with results, not subtracted from them.
struct ClockQuality {
  double resolution = 0;  // s; the smallest step seen
  double empty = 0;       // s; an empty measurement, median
};
ClockQuality clock_quality(Clock& clock);

}  // namespace superstep::lab
