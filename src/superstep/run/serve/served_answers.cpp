#include "superstep/run/serve/served_answers.h"

#include <numeric>

#include "superstep/base/measured_metric.h"
#include "superstep/base/stopwatch.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/onnx/import_options.h"
#include "superstep/run/serve/sound.h"
#include "superstep/run/user/arrays.h"

namespace superstep::run {
namespace {

// What a modelled machine takes for a batch, and how long this host took to execute all samples.
std::vector<Metric> modelled_metrics(const target::Executable::ModelledTime& time, std::int64_t batch,
                                     double host_seconds) {
  const double latency = time.seconds / static_cast<double>(std::max<std::uint64_t>(1, time.runs));
  std::vector<Metric> metrics{
      measured_metric("throughput", static_cast<double>(batch) / latency, "samples/s"),
      measured_metric("latency_mean", latency, "s")};
  for (Metric& predicted : metrics) predicted.how = How::predicted;
  metrics.push_back(measured_metric("host_time", host_seconds, "s"));
  return metrics;
}

// Spreads are outputs, too, and their means over all samples are told.
void add_spread(Served& served, std::vector<Tensor> spread) {
  for (std::size_t i = 0; i < spread.size(); ++i) {
    target::Executable::Port port = served.ports[i];
    port.name += "_spread";
    double sum = 0;
    for (std::int64_t k = 0; k < spread[i].element_count(); ++k) sum += spread[i].at(k);
    served.metrics.push_back(
        {.name = port.name + "_mean",
         .value = sum / static_cast<double>(std::max<std::int64_t>(1, spread[i].element_count())),
         .unit = "",
         .samples = {}});
    served.ports.push_back(std::move(port));
    served.outputs.push_back(std::move(spread[i]));
  }
}

std::int64_t beyond_bounds_of(const Served& served) {
  double all = 0;
  for (std::size_t i = 0; i < served.outputs.size(); ++i)
    if (served.ports[i].name == onnx::beyond_bounds)
      for (std::int64_t k = 0; k < served.outputs[i].element_count(); ++k) all += served.outputs[i].at(k);
  return static_cast<std::int64_t>(all);
}

}  // namespace

// HDF5 remembers where its contents come from; other formats hold the arrays alone, a table what the task
// makes of them.
void write_outputs(const std::filesystem::path& path, std::span<const target::Executable::Port> ports,
                   const std::vector<Tensor>& outputs, const InferSettings& settings, const Task& task,
                   double seconds_of_sample) {
  if (task.writes_table(path)) return task.write_table(path, outputs);
  if (path.extension() != ".h5" && path.extension() != ".hdf5") {
    NamedTensors arrays;
    for (std::size_t i = 0; i < outputs.size(); ++i) arrays.emplace(ports[i].name, outputs[i]);
    return write_arrays(path, arrays);
  }
  data::Hdf5Writer file(path);
  for (std::size_t i = 0; i < outputs.size(); ++i) file.write(ports[i].name, outputs[i]);
  if (settings.passes > 0) file.set_attribute("", "passes", std::to_string(settings.passes));
  file.set_attribute("", "workload", settings.workload);
  file.set_attribute("", "weights", settings.weights.string());
  file.set_attribute("", "seconds_per_sample", seconds_of_sample);
  if (settings.refine > 0) file.set_attribute("", "refine", settings.refine);
  file.close();
}

// `plans`: sequences go through them; null: through the evaluator.
Served serve(Evaluator& evaluator, LengthPlans* plans, const Task& task, bool trained, int passes,
             ThreadPool& pool) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(task.size()));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  Served served;
  const Stopwatch watch;
  std::vector<Tensor> spread;
  if (passes > 1) {
    auto sampled = evaluator.sample(task, indices, pool, passes);
    served.outputs = std::move(sampled.mean);
    spread = std::move(sampled.spread);
  } else
    served.outputs = plans ? plans->predict(task, indices, pool) : evaluator.predict(task, indices, pool);
  const double elapsed = served.seconds = watch.seconds() - (plans ? plans->compile_seconds() : 0);
  target::Executable& executable = evaluator.executable();
  served.ports.assign(executable.outputs().begin(), executable.outputs().end());
  if (const auto modelled = executable.modelled_time())
    served.metrics = modelled_metrics(*modelled, evaluator.batch(), elapsed);
  else
    served.metrics.push_back(
        measured_metric("throughput_with_data", static_cast<double>(task.size()) / elapsed, "samples/s"));
  if (trained && task.has_labels())
    for (const Metric& quality : task.quality(indices, served.outputs)) served.metrics.push_back(quality);
  if (trained && task.has_labels() && !spread.empty())
    for (Metric& worth : task.spread_quality(indices, served.outputs, spread))
      served.metrics.push_back(std::move(worth));
  add_spread(served, std::move(spread));
  return served;
}

// What the only call gave of a whole is written as it is.
void of_one_call(Served& served, std::span<const std::string> whole_outputs) {
  for (std::size_t i = 0; i < served.outputs.size(); ++i) {
    const std::vector<std::int64_t>& extents = served.outputs[i].shape().extents();
    const bool whole = std::ranges::find(whole_outputs, served.ports[i].name) != whole_outputs.end();
    if (whole && extents[0] == 1)
      served.outputs[i] = served.outputs[i].reshaped(Shape({extents.begin() + 1, extents.end()}));
  }
}

// What a user should know of the answers, and of the weights that gave them.
void say_of_answers(const Served& served, InferReport& report) {
  report.beyond_bounds = beyond_bounds_of(served);
  for (const Tensor& output : served.outputs)
    report.not_finite = std::max(report.not_finite, rows_not_finite(output));
}

}  // namespace superstep::run
