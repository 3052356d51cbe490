#include "superstep/run/serve/trained_forces.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/run/model.h"

namespace superstep::run {
namespace {

std::unique_ptr<workload::AtomModel> atoms_of(const Weights& weights, const std::vector<int>& elements) {
  const Model model(weights.settings);
  const workload::Workload& workload = model.workload();
  try {
    return workload::open_atoms(workload.name, elements,
                                Options(workload.options, model.settings().model_options));
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.code(), error.message(), weights.where, error.hint());
  }
}

}  // namespace

TrainedForces::TrainedForces(const std::filesystem::path& run, const std::vector<int>& elements, int threads)
    : TrainedForces(load_weights(run), elements, threads) {}

TrainedForces::TrainedForces(const Weights& weights, const std::vector<int>& elements, int threads)
    : atoms_(atoms_of(weights, elements)) {
  TrainSettings settings = weights.settings;
  for (const std::string& option : atoms_->room()) settings.model_options.push_back(option);
  const target::Target& target = target::find_target("cpu");
  executable_ =
      target.compile(Model(settings).inference(&target), {.batch = 1, .micro_batch = 1, .threads = threads});
  for (const std::string& name : executable_->state_names()) {
    const auto found = weights.states.find(name);
    if (found == weights.states.end())
      throw Error(ErrorCode::bad_file, fmt::format("has no parameter {}: it belongs to another model", name),
                  weights.where);
    executable_->set_state(name, found->second);
  }
  for (const auto& port : executable_->inputs()) inputs_.emplace_back(port.type.element, port.type.shape);
  for (const auto& port : executable_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
}

data::Labels TrainedForces::evaluate(const data::Configuration& atoms) {
  atoms_->fill(atoms, inputs_);
  executable_->run(inputs_, outputs_);
  return atoms_->read(outputs_);
}

}  // namespace superstep::run
