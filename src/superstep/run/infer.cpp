#include "superstep/run/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "superstep/base/thread_pool.h"
#include "superstep/data/hdf5.h"
#include "superstep/run/checkpoint.h"
#include "superstep/run/evaluate.h"
#include "superstep/run/model.h"
#include "superstep/run/run_directory.h"
#include "superstep/run/task.h"

namespace superstep::run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int warm_up_calls = 10;
constexpr std::int64_t calls_for_latency = 200;

double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(1, rank) - 1];
}

Metric metric(const char* name, double value, const char* unit) {
  return {.name = name, .value = value, .unit = unit, .samples = {}};
}

void write_outputs(const std::filesystem::path& path, std::span<const target::Executable::Port> ports,
                   const std::vector<Tensor>& outputs, const InferSettings& settings) {
  data::Hdf5Writer file(path);
  for (std::size_t i = 0; i < outputs.size(); ++i) file.write(ports[i].name, outputs[i]);
  file.set_attribute("", "workload", settings.workload);
  file.set_attribute("", "weights", settings.weights.string());
  file.close();
}

}  // namespace

Weights load_weights(const std::filesystem::path& folder) {
  const RunDirectory directory = RunDirectory::open(folder);
  Weights weights{.settings = train_settings_from_json(directory.config()), .states = {}, .where = {}};
  if (std::filesystem::exists(directory.best())) {
    weights.where = directory.best().string();
    weights.states = read_checkpoint(directory.best()).states;
    return weights;
  }
  auto newest = read_newest_checkpoint(directory.checkpoints());
  if (!newest)
    throw Error(ErrorCode::not_found, "has no checkpoint yet", folder.string(),
                "train for longer, or resume the run");
  weights.where = directory.checkpoints().string();
  weights.states = std::move(newest->states);
  return weights;
}

std::vector<Metric> measure_serving(target::Executable& executable, std::int64_t batch,
                                    std::span<const Tensor> inputs, std::int64_t calls) {
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  for (int i = 0; i < warm_up_calls; ++i) executable.run(inputs, outputs);
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < calls; ++i) {
    const auto begun = Clock::now();
    executable.run(inputs, outputs);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
  }
  std::ranges::sort(seconds);
  const double mean =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  std::vector<Metric> metrics{
      metric("throughput", static_cast<double>(batch) / percentile(seconds, 0.5), "samples/s"),
      metric("latency_mean", mean, "s"), metric("latency_p50", percentile(seconds, 0.5), "s")};
  if (calls >= 100) metrics.push_back(metric("latency_p90", percentile(seconds, 0.9), "s"));
  if (calls >= 1000) metrics.push_back(metric("latency_p99", percentile(seconds, 0.99), "s"));
  return metrics;
}

InferReport infer(const InferSettings& given) {
  InferSettings settings = given;
  TrainSettings model_settings{.workload = settings.workload};
  std::optional<Weights> weights;
  if (!settings.weights.empty()) {
    weights = load_weights(settings.weights);
    if (weights->settings.workload != settings.workload)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("is a run of '{}', not of '{}'", weights->settings.workload, settings.workload),
                  settings.weights.string());
    model_settings = weights->settings;
  }
  if (!settings.precision.empty()) model_settings.precision = settings.precision;
  const Model model(model_settings);
  ThreadPool pool(settings.threads);
  const auto task = open_task(model.workload(), {.data = settings.input,
                                                 .samples = settings.samples,
                                                 .seed = model_settings.seed,
                                                 .model_options = model_settings.model_options,
                                                 .labels_required = false,
                                                 .pool = &pool});
  const std::int64_t batch = std::min(settings.batch, task->size());
  Evaluator evaluator(target::find_target(settings.backend), model.inference(),
                      {.batch = batch, .threads = settings.threads, .measure_steps = settings.measure_steps});
  if (weights) evaluator.set_parameters(weights->states, weights->where);

  std::vector<std::int64_t> indices(static_cast<std::size_t>(task->size()));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  const auto begun = Clock::now();
  const std::vector<Tensor> outputs = evaluator.predict(*task, indices, pool);
  const double elapsed = std::chrono::duration<double>(Clock::now() - begun).count();
  if (!settings.output.empty())
    write_outputs(settings.output, evaluator.executable().outputs(), outputs, settings);

  std::vector<Tensor> inputs;
  for (const auto& port : evaluator.executable().inputs())
    inputs.emplace_back(port.type.element, port.type.shape);
  task->fill_inputs(std::span(indices).first(static_cast<std::size_t>(batch)), inputs, pool);
  InferReport report{.metrics = measure_serving(evaluator.executable(), batch, inputs, calls_for_latency),
                     .samples = task->size(),
                     .plan = evaluator.executable().summary()};
  report.metrics.push_back(
      metric("throughput_with_data", static_cast<double>(task->size()) / elapsed, "samples/s"));
  if (weights && task->has_labels())
    for (Metric& quality : task->quality(indices, outputs)) report.metrics.push_back(std::move(quality));
  return report;
}

}  // namespace superstep::run
