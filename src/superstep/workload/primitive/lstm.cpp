// The frequency of noisy oscillations, by recurrent layers.
//
// x f32 [N, 50, 32] -> two LSTMs of 128 units -> y f32 [N, 1], from the last state.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/series/oscillation_fit.h"
#include "superstep/physics/oscillation_generator.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/primitive/recurrent.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

graph::Graph build_lstm(std::int64_t batch, const Options& options, std::uint64_t seed) {
  graph::Graph graph("lstm");
  Builder b(graph);
  Layers layers(b, seed);
  const std::int64_t units = options.integer("units", 1, 8192), depth = options.integer("layers", 1, 16);
  Var states =
      sequence_input(b, batch, options.integer("steps", 1, 65536), options.integer("inputs", 1, 65536));
  Var last;
  for (std::int64_t i = 1; i <= depth; ++i) {
    const Layers::Sequence sequence = layers.lstm(states, fmt::format("lstm{}", i), units);
    states = sequence.states;
    last = sequence.last;
  }
  b.output("y", layers.dense(last, "fc", 1));
  return graph;
}

// --- what others reach

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

// --- pictures: windows with their true and found number of periods

constexpr std::int64_t shown_sensors = 3;

page::Plot window_plot(const Tensor& x, std::int64_t sample, const std::string& title) {
  const std::int64_t steps = x.shape()[1], sensors = x.shape()[2];
  page::Plot plot{.title = title, .x_label = "step", .y_label = "amplitude", .series = {}};
  for (std::int64_t sensor = 0; sensor < std::min(sensors, shown_sensors); ++sensor) {
    page::Series series{.label = fmt::format("sensor {}", sensor + 1), .x = {}, .y = {}};
    for (std::int64_t step = 0; step < steps; ++step) {
      series.x.push_back(static_cast<double>(step));
      series.y.push_back(x.at((sample * steps + step) * sensors + sensor));
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

std::string present_oscillations(const Fields& fields, const Predictions& found, page::Page& page) {
  const Tensor& target = fields.at("target");
  Regression periods{.quantity = "Periods in a window",
                     .unit = "",
                     .truth = {},
                     .found = {},
                     .samples = {found.indices.begin(), found.indices.end()}};
  std::vector<double> distances;
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    periods.truth.push_back(data::fastest_oscillation * target.at(found.indices[i]));
    periods.found.push_back(data::fastest_oscillation * found.outputs[0].at(static_cast<std::int64_t>(i)));
    distances.push_back(std::abs(periods.found[i] - periods.truth[i]));
  }
  present_regression(page, periods);
  page.heading("Windows", 3).begin_row();
  for (const Chosen& chosen : best_median_worst(distances, 1))
    page.plot(window_plot(fields.at("x"), found.indices[chosen.at],
                          fmt::format("{}: {:.2f} periods true, {:.2f} found", chosen.why,
                                      periods.truth[chosen.at], periods.found[chosen.at])));
  page.end_row();
  return {};
}

std::unique_ptr<Task> open_oscillations(const TaskSettings& settings, const Options& model) {
  return open_table_task({.generator = "lstm",
                          .settings = {"steps=" + model.text("steps"), "inputs=" + model.text("inputs")},
                          .default_samples = 4096,
                          .group = {},
                          .inputs = {{"x"}},
                          .targets = {{"target"}},
                          .more = {},
                          .quality = rmse_of_target,
                          .present = present_oscillations,
                          .references = mean_and_fit,
                          .reference_fields = {}},
                         settings);
}

}  // namespace

Workload lstm() {
  return {
      .name = "lstm",
      .summary = "the frequency of a noisy oscillation, by two LSTM layers of 128 units over 50 steps",
      .options = {{"steps", "50", "steps of a sequence"},
                  {"inputs", "32", "values of a step"},
                  {"units", "128", "of each layer"},
                  {"layers", "2", "one after the other"}},
      .build = build_lstm,
      .parameters = 82944 + 132096 + 129,  // 4 * 128 * (inputs + 128 + 2) a layer, and the dense one
      .flops = 21299457,
      .inputs = {{"x", ElementType::f32, {50, 32}, "", "steps of what 32 sensors see"}},
      .outputs = {{"y", ElementType::f32, {1}, "", "periods in the whole sequence, divided by 5"}},
      .targets = {{"target", ElementType::f32, {1}, "", "periods in the whole sequence, divided by 5"}},
      .training = mse_by_adam(32, 10),
      .open = open_oscillations,
      .metrics = {{"rmse", ""}},
      // A tenth of a period in the whole sequence, an eleventh of what the mean frequency is off. The model
      // is there for its throughput and nothing is published of its quality: this shows that it learns. A
      // sinusoid fitted by least squares, which knows the shape, is 25 times nearer than that.
      .target = QualityTarget{.metric = "rmse", .value = 0.02},
  };
}

}  // namespace superstep::workload
