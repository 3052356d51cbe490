// Noisy oscillations, whose frequency is to be found.
#include <cmath>

#include "superstep/baseline/oscillation_fit.h"
#include "superstep/data/oscillation_generator.h"
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

std::vector<Metric> rmse(const Fields& fields, std::span<const std::int64_t> indices,
                         std::span<const Tensor> outputs) {
  return {quality_metric("rmse", root_mean_square_error(fields.at("target"), indices, outputs[0]))};
}

// The mean frequency of the training sequences, and a sinusoid fitted to every sequence by itself.
References mean_and_fit(const TableSamples& samples) {
  const Tensor &x = samples.fields.at("x"), &target = samples.fields.at("target");
  double mean = 0;
  for (std::int64_t i = 0; i < samples.training; ++i)
    mean += target.at(i) / static_cast<double>(samples.training);
  const std::int64_t steps = x.shape()[1], sensors = x.shape()[2];
  const auto row = static_cast<std::size_t>(steps * sensors);
  std::vector<double> fit(samples.indices.size());
  samples.pool.parallel_for(static_cast<std::int64_t>(fit.size()), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    const auto at = static_cast<std::size_t>(samples.indices[i]) * row;
    fit[i] =
        baseline::fit_periods(x.as<float>().subspan(at, row), steps, sensors) / data::fastest_oscillation;
  });
  double of_mean = 0, of_fit = 0;
  for (std::size_t i = 0; i < fit.size(); ++i) {
    const double truth = target.at(samples.indices[i]);
    of_mean += (mean - truth) * (mean - truth);
    of_fit += (fit[i] - truth) * (fit[i] - truth);
  }
  const auto count = static_cast<double>(fit.size());
  return {.floor = Reference{"the mean frequency", std::sqrt(of_mean / count)},
          .conventional = Reference{"a least-squares sinusoid", std::sqrt(of_fit / count)},
          .limit = {},
          .target = {}};
}

}  // namespace

std::unique_ptr<Task> open_oscillation_task(const TaskSettings& settings, const Options& model) {
  return open_table_task({.generator = "lstm",
                          .settings = {"steps=" + model.text("steps"), "inputs=" + model.text("inputs")},
                          .default_samples = 4096,
                          .group = {},
                          .inputs = {{"x"}},
                          .targets = {{"target"}},
                          .more = {},
                          .quality = rmse,
                          .present = present_oscillations,
                          .references = mean_and_fit,
                          .reference_fields = {}},
                         settings);
}

}  // namespace superstep::run
