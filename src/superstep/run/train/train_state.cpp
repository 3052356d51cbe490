#include "superstep/run/train/train_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/progress.h"
#include "superstep/run/serve/served_weights.h"

namespace superstep::run {

namespace {

// Nothing where no metric is watched. Numbers are written so that they are read back bit by bit.
void note_plateau(Checkpoint& checkpoint, const Plateau& plateau) {
  if (!plateau.best) return;
  checkpoint.notes["plateau.reduced"] = fmt::format("{}", plateau.reduced);
  checkpoint.notes["plateau.best"] = fmt::format("{}", *plateau.best);
  checkpoint.notes["plateau.waited"] = std::to_string(plateau.waited);
  checkpoint.notes["plateau.without_gain"] = std::to_string(plateau.without_gain);
}

Plateau plateau_of(const Checkpoint& checkpoint, const std::string& where) {
  const auto number = [&](const char* name) { return number_in_notes(checkpoint, name, where); };
  return {.reduced = number("plateau.reduced").value_or(1),
          .best = number("plateau.best"),
          .waited = static_cast<int>(number("plateau.waited").value_or(0)),
          .without_gain = static_cast<int>(number("plateau.without_gain").value_or(0))};
}

}  // namespace

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
  note_plateau(checkpoint, state.plateau);
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
          .reached = checkpoint.notes.contains("reached"),
          .plateau = plateau_of(checkpoint, where)};
}

void fit_states(target::Executable& executable, const Model& model, const Task& task, ThreadPool& pool) {
  const workload::Workload& workload = model.workload();
  if (!workload.fit) return;
  const Progress phase = Progress::phase("fitting " + workload.name);
  for (const auto& [name, value] :
       workload.fit(task, Options(workload.options, model.settings().model_options), pool))
    executable.set_state(name, value);
}

void begin_with(target::Executable& executable, const Model& model, const std::filesystem::path& folder) {
  const Weights weights = load_weights_for(model.settings(), folder);
  const std::map<std::string, Tensor> own = states_of(executable);
  const graph::Graph graph = model.inference()(std::max<std::int64_t>(1, model.fixed_batch()));
  for (const graph::ValueId state : graph.states()) {
    const std::string& name = graph.value(state).name;
    const auto found = weights.states.find(name);
    if (found == weights.states.end() || found->second.shape() != graph.type(state).shape)
      throw Error(
          ErrorCode::bad_file,
          fmt::format("has {}, which the model asked for has as {}",
                      found == weights.states.end() ? "no state " + name
                                                    : name + " of " + to_string(found->second.shape()),
                      to_string(graph.type(state).shape)),
          weights.where, "give the --set options of that run");
    for (const std::string& place : {name, "average/" + name})
      if (own.contains(place)) executable.set_state(place, found->second);
  }
}

}  // namespace superstep::run
