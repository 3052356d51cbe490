#include "superstep/target/cpu/run/step_recorder.h"

#include <chrono>

namespace superstep::target::cpu {

double StepRecorder::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void StepRecorder::begin_run(double origin) {
  events_.clear();
  origin_ = origin;
  ++runs_;
}

void StepRecorder::add(std::size_t step, std::int64_t micro_batch, double begin, double end, int threads) {
  Executions& executions = steps_[step];
  if (runs_ > 1 && executions.of_first_run) executions = {.of_first_run = false};
  executions.seconds += end - begin;
  ++executions.count;
  events_.push_back({.step = step,
                     .thread = thread_,
                     .threads = threads,
                     .micro_batch = micro_batch,
                     .begin = begin - origin_,
                     .seconds = end - begin});
}

}  // namespace superstep::target::cpu
