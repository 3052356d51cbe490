#include "superstep/run/train_state.h"

#include <fmt/format.h>

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
  checkpoint.notes["epoch_loss"] = fmt::format("{}", state.epoch_loss);
  checkpoint.notes["epoch_steps"] = std::to_string(state.epoch_steps);
  if (state.best) checkpoint.notes["best"] = fmt::format("{}", *state.best);
  if (state.reached) checkpoint.notes["reached"] = "yes";
  return checkpoint;
}

TrainState state_of(const Checkpoint& checkpoint) {
  const auto number = [&](const char* name) {
    const auto found = checkpoint.notes.find(name);
    return found == checkpoint.notes.end() ? 0.0 : std::stod(found->second);
  };
  TrainState state{.step = checkpoint.step,
                   .seconds = checkpoint.seconds,
                   .epoch_loss = number("epoch_loss"),
                   .epoch_steps = static_cast<std::int64_t>(number("epoch_steps")),
                   .best = std::nullopt,
                   .reached = checkpoint.notes.contains("reached")};
  if (checkpoint.notes.contains("best")) state.best = number("best");
  return state;
}

}  // namespace superstep::run
