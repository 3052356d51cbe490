// Where a training run stands, beside the model's states: what a checkpoint keeps of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "superstep/run/model.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/schedule.h"
#include "superstep/target/target.h"

namespace superstep::run {

struct TrainState {
  std::int64_t step = 0;
  double seconds = 0;     // of the sittings before this one
  double loss = 0;        // of the last step
  double epoch_loss = 0;  // sum over the steps of the epoch so far
  std::int64_t epoch_steps = 0;
  std::optional<double> best;  // of the first quality
  bool reached = false;        // the target
  Plateau plateau;             // of the metric that the schedule watches

  double mean_loss() const { return epoch_loss / static_cast<double>(epoch_steps > 1 ? epoch_steps : 1); }
};

// With the states of the plan where they lie: written before its next run. `seconds` are those of the whole
// run until now.
Checkpoint checkpoint_of(const TrainState& state, const std::string& workload, double seconds,
                         const target::Executable& executable);
// Throws Error (bad_file) naming `where` on a note that is no number.
TrainState state_of(const Checkpoint& checkpoint, const std::string& where);

// What the workload computes from the training samples before the first step goes into the plan's states;
// most workloads compute nothing.
void fit_states(target::Executable& executable, const Model& model, const Task& task, ThreadPool& pool);

// The parameters and statistics of the run in `folder` go into the plan's states; moments and counters stay
// as they are, at their beginning. Throws Error: bad_file naming the first state that the run lacks or has of
// another shape, invalid_argument for a run of another workload, and what load_weights throws.
void begin_with(target::Executable& executable, const Model& model, const std::filesystem::path& folder);

}  // namespace superstep::run
