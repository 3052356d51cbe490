#include "superstep/target/pjrt/phases.h"

namespace superstep::target::pjrt {

void Phases::begin() {
  if (are_measured_) watch_ = Stopwatch();
}

void Phases::next(CallPhase phase) {
  if (are_measured_) begun_[static_cast<std::size_t>(phase)] = watch_.seconds();
}

void Phases::end() {
  if (are_measured_) begun_[count] = watch_.seconds();
}

Timeline Phases::timeline() const {
  if (!are_measured_) return {};
  constexpr const char* names[count] = {"inputs to the device", "start", "compute",
                                        "outputs from the device"};
  Timeline timeline;
  for (std::size_t i = 0; i < count; ++i) {
    PlanStep step;
    step.op = names[i];
    timeline.steps.push_back(step);
    timeline.events.push_back({.step = i, .begin = begun_[i], .seconds = begun_[i + 1] - begun_[i]});
  }
  timeline.seconds = begun_[count];
  return timeline;
}

}  // namespace superstep::target::pjrt
