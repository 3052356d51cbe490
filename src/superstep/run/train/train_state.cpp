#include "superstep/run/train/train_state.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/base/progress.h"

namespace superstep::run {

Checkpoint checkpoint_of(const TrainState& state, const std::string& workload, double seconds,
                         const target::Executable& executable) {
  Checkpoint checkpoint{.workload = workload,
                        .signature = {},
                        .step = state.step,
                        .seconds = seconds,
                        .states = states_of(executable),
                        .notes = {}};
  checkpoint.signature = state_signature(checkpoint.states);
  checkpoint.notes["loss"] = fmt::format("{}", state.loss);
  checkpoint.notes["epoch_loss"] = fmt::format("{}", state.epoch_loss);
  checkpoint.notes["epoch_steps"] = std::to_string(state.epoch_steps);
  if (state.best) checkpoint.notes["best"] = fmt::format("{}", *state.best);
  if (state.reached) checkpoint.notes["reached"] = "yes";
  return checkpoint;
}

TrainState state_of(const Checkpoint& checkpoint, const std::string& where) {
  const auto number = [&](const char* name) { return number_in_notes(checkpoint, name, where); };
  return {.step = checkpoint.step,
          .seconds = checkpoint.seconds,
          .loss = number("loss").value_or(0),
          .epoch_loss = number("epoch_loss").value_or(0),
          .epoch_steps = std::llround(number("epoch_steps").value_or(0)),
          .best = number("best"),
          .reached = checkpoint.notes.contains("reached")};
}

void fit_states(target::Executable& executable, const Model& model, const Task& task, ThreadPool& pool) {
  const workload::Workload& workload = model.workload();
  if (!workload.fit) return;
  const Progress phase = Progress::phase("fitting " + workload.name);
  for (const auto& [name, value] :
       workload.fit(task, Options(workload.options, model.settings().model_options), pool))
    executable.set_state(name, value);
}

}  // namespace superstep::run
