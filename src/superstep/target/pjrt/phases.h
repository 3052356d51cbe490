// The parts of a run on a device as its host sees them, timed.
#pragma once

#include <array>
#include <cstdint>

#include "superstep/base/stopwatch.h"
#include "superstep/target/target.h"

namespace superstep::target::pjrt {

enum class CallPhase : std::uint8_t {
  to_device,    // inputs are copied
  start,        // until the call that runs the program comes back
  compute,      // until the device has done it
  from_device,  // outputs are copied
};

class Phases {
 public:
  explicit Phases(bool are_measured) : are_measured_(are_measured) {}

  bool are_measured() const { return are_measured_; }
  void begin();                // with CallPhase::to_device
  void next(CallPhase phase);  // which begins here
  void end();
  Timeline timeline() const;  // of the last run; empty where phases are not measured

 private:
  static constexpr std::size_t count = 4;

  bool are_measured_;
  Stopwatch watch_;
  std::array<double, count + 1> begun_{};  // seconds since the run began
};

}  // namespace superstep::target::pjrt
