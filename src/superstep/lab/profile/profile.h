// Where the time of a compiled plan goes: every step timed, beside the least it could take.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "superstep/lab/profile/floor.h"
#include "superstep/target/target.h"

namespace superstep::lab {

// What is profiled: a model at any batch, and how its inputs are filled.
struct ProfiledModel {
  std::string name;  // "braggnn"
  std::string mode;  // "train" or "infer"
  std::string precision;
  bool fixed_batch = false;  // of a model file: the micro-batch is the batch
  target::GraphAtBatch graph;
  std::function<void(std::vector<Tensor>& inputs)> fill;  // tensors have the ports' types
};

struct ProfileSettings {
  std::int64_t batch = 64;
  std::int64_t micro_batch = 0;  // 0: the target chooses
  int threads = 1;
  int runs = 30;  // measured ones, after a third as many that are not
};

struct StepProfile {
  target::PlanStep step;
  std::int64_t executions = 0;  // in one run, by all threads
  int threads = 1;              // that share one execution
  double seconds = 0;           // of one execution, the median over all measured runs
  StepFloor floor;              // of one execution by one thread
  // Of all executions in a run: the time of all threads, and the least of it.
  double total() const { return seconds * threads * static_cast<double>(executions); }
  double total_floor() const { return floor.seconds() * static_cast<double>(executions); }
  double share_of_floor() const { return seconds > 0 ? floor.seconds() / (seconds * threads) : 0; }
};

// Steps of the same operator together.
struct OperatorProfile {
  std::string op;  // the first of fused ones: "Conv"
  std::size_t steps = 0;
  double seconds = 0, floor_seconds = 0, flops = 0;  // of one run, all threads together
};

struct Profile {
  std::string name, mode, precision;
  target::PlanSummary plan;
  MachineFloor machine;
  std::vector<StepProfile> steps;
  std::vector<OperatorProfile> operators;  // the most time first
  target::Timeline timeline;               // of the median run
  double seconds = 0;                      // of a run without the clocks around steps, median
  double measured_seconds = 0;             // with them
  double clock_seconds = 0;                // of one reading of the clock
  double busy_seconds = 0;                 // sum of all steps, all threads
  double floor_seconds = 0;                // of the same: sum of floors

  double throughput() const { return static_cast<double>(plan.batch) / seconds; }
  // Of the threads' time: the least that the steps could take over what they and all between them took.
  double share_of_floor() const { return floor_seconds / (seconds * plan.threads); }
};

// Throws Error as Target::compile does, and (unsupported) for a target that does not measure steps.
Profile measure_profile(const target::Target& target, const ProfiledModel& model,
                        const ProfileSettings& settings, const MachineFloor& machine);

}  // namespace superstep::lab
