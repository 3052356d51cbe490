#include "superstep/workflow/conductivity/served.h"

#include <algorithm>

#include "superstep/physics/stream_blocks.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"

namespace superstep::workflow {
namespace {

run::Evaluator evaluator_of(const run::Weights& weights, std::int64_t batch, int threads) {
  const target::Target& target = target::find_target("cpu");
  run::Evaluator evaluator(target, run::Model(weights.settings).inference(&target),
                           {.batch = batch, .threads = threads}, true);
  evaluator.set_parameters(weights.states, weights.where);
  return evaluator;
}

}  // namespace

Served::Served(const std::filesystem::path& run, std::int64_t batch, int threads)
    : evaluator_(evaluator_of(run::load_weights(run), batch, threads)) {}

void Served::run(std::int64_t samples, const Fill& fill, const Take& take) {
  target::Executable& executable = evaluator_.executable();
  const std::int64_t batch = evaluator_.batch();
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : executable.inputs()) inputs.emplace_back(port.type.element, port.type.shape);
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  for (std::int64_t first = 0; first < samples; first += batch) {
    data::throw_if_interrupted();
    const std::int64_t count = std::min(batch, samples - first);
    fill(first, count, inputs);
    executable.run(inputs, outputs);
    take(first, count, outputs[0]);
  }
}

std::int64_t training_samples(const std::filesystem::path& run) {
  const run::TrainSettings settings = run::load_weights(run).settings;
  return run::Model(settings)
      .open_task({.data = settings.data,
                  .samples = settings.samples,
                  .seed = settings.seed,
                  .model_options = settings.model_options})
      ->training_count();
}

}  // namespace superstep::workflow
