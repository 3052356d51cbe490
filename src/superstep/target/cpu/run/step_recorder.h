// When the steps of a plan ran: what one thread measured, for `--explain` and profiles.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/target.h"

namespace superstep::target::cpu {

// Used by one thread at a time. Steps are numbered through all parts of the plan.
class StepRecorder {
 public:
  StepRecorder(std::size_t steps, int thread) : steps_(steps), thread_(thread) {}

  // Seconds of the monotonic clock.
  static double now();

  // Forgets the events of the last run and counts from `origin`. Allocates nothing after the first run.
  void begin_run(double origin);
  // `threads`: how many shared the step.
  void add(std::size_t step, std::int64_t micro_batch, double begin, double end, int threads = 1);

  // Seconds and number of all executions, but for those of a first run, which meets cold memory, where there
  // were others.
  double total(std::size_t step) const { return steps_[step].seconds; }
  std::int64_t count(std::size_t step) const { return steps_[step].count; }
  const std::vector<StepEvent>& events() const { return events_; }

 private:
  struct Executions {
    double seconds = 0;
    std::int64_t count = 0;
    bool of_first_run = true;
  };
  std::vector<Executions> steps_;
  std::int64_t runs_ = 0;
  std::vector<StepEvent> events_;
  double origin_ = 0;
  int thread_;
};

}  // namespace superstep::target::cpu
