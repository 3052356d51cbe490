#include "superstep/lab/advise/processor.h"

#include <cmath>

#include "superstep/lab/processor/prediction.h"
#include "superstep/target/target.h"

namespace superstep::lab {
namespace {

constexpr std::int64_t together = 64;  // chosen: what a server gathers in some milliseconds

// As the other machines' predictions are: one stage, and no host beside it.
machine::Prediction as_prediction(const machine::Machine& machine, const ProcessorPrediction& of) {
  const double up = std::exp(of.uncertainty), samples = static_cast<double>(of.plan.batch);
  machine::Prediction prediction{.machine = machine.id(), .fits = of.fits()};
  prediction.step.compute = prediction.step_seconds = prediction.step_seconds_with_data = of.seconds;
  prediction.samples = samples;
  prediction.flops = of.plan.flops;
  prediction.fed = {of.seconds / up, of.seconds * up, of.seconds / up, of.seconds * up};
  prediction.uncertainty = prediction.model_uncertainty = of.uncertainty;
  prediction.faster = prediction.slower = of.uncertainty;
  prediction.peak_seconds = of.peak_seconds;
  prediction.roofline_seconds = of.roofline_seconds;
  prediction.beyond = of.beyond;
  machine::Stage stage;
  stage.forward_backward.compute = of.seconds;
  stage.memory.limit = of.memory_limit;
  stage.memory.activations = of.memory;
  prediction.stages.push_back(stage);
  return prediction;
}

std::vector<std::int64_t> batches_of(const SearchSettings& settings) {
  if (settings.fixed_batch > 0) return {settings.fixed_batch};
  if (settings.trains) return {settings.most_samples};
  if (settings.goal == Goal::latency) return {1};
  return {1, std::min(together, settings.most_samples)};
}

}  // namespace

std::vector<Option> options_on_processor(const machine::Machine& machine, const run::TrainSettings& model,
                                         int threads, const SearchSettings& settings) {
  const std::vector<std::string> precisions =
      settings.precisions.empty() ? std::vector<std::string>{"f32", "bf16"} : settings.precisions;
  const target::Target& cpu = target::find_target("cpu");
  std::vector<Option> options;
  for (const std::string& precision : precisions) {
    if (precision != "f32" && precision != "bf16") continue;  // what the engine computes in
    run::TrainSettings chosen = model;
    chosen.precision = precision;
    const run::Model of(chosen);
    for (const std::int64_t batch : batches_of(settings)) {
      const auto plan = cpu.compile(settings.trains ? of.training_step(&cpu) : of.inference(&cpu),
                                    {.batch = batch, .threads = threads});
      Option option{
          .settings = {.micro_batch = batch},
          .prediction = as_prediction(machine, predict_plan(machine, plan->summary(), settings.trains))};
      option.settings.precision = machine::precision_from_name(precision);
      option.figure = figure_of(settings.goal, option.prediction, settings.context);
      const double seconds = option.prediction.step_seconds;
      option.within_limits =
          option.prediction.fits && (settings.latency_limit <= 0 || seconds <= settings.latency_limit) &&
          (settings.rate_wanted <= 0 || option.prediction.samples / seconds >= settings.rate_wanted);
      options.push_back(std::move(option));
    }
  }
  return options;
}

}  // namespace superstep::lab
