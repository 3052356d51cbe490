// A Bayesian perceptron on returns: 22 lagged returns, two hidden layers of 40 tanh and the mean of the next
// return, with noise of unknown size. Its posterior is sampled (`superstep sample mcmc`); `train` finds one
// set of weights.
//
// Widths and inputs: Graphcore IPUs: Accelerating Argonne's AI/ML Applications (2022), which names three
// layers, 40 units in the first and 22 inputs; the rest is chosen here. Returns: physics/returns.h.
//
// x f32 [N, 22] -> mean f32 [N, 1].
#include <fmt/format.h>

#include <cmath>

#include "superstep/baseline/series/autoregression.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/physics/returns.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/series/mcmc/mcmc.h"

namespace superstep::workload {
namespace {

using data::lag_count;

graph::Graph build_mcmc(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const std::int64_t units = options.integer("units", 1, 4096);
  graph::Graph graph("mcmc");
  Builder b(graph);
  Layers layers(b, seed);
  Var y = b.input("x", ElementType::f32, {batch, lag_count});
  for (int i = 1; i <= 2; ++i) {
    const std::string name = fmt::format("fc{}", i);
    y = layers.dense(y, name, units);
    b.set_name(name + ".tanh");
    y = op::tanh(y);
  }
  b.output("mean", layers.dense(y, "fc3", 1));
  return graph;
}

// --- what others reach, in units of the window's deviation

std::vector<double> values_of(const Tensor& field, std::int64_t first, std::int64_t count,
                              std::int64_t width) {
  std::vector<double> values;
  for (std::int64_t i = first; i < first + count; ++i) values.push_back(field.at(i * width));
  return values;
}

double rmse_of(const Tensor& y, std::span<const std::int64_t> indices, auto&& forecast) {
  double squares = 0;
  for (const std::int64_t i : indices) squares += std::pow(forecast(i) - y.at(i), 2);
  return std::sqrt(squares / static_cast<double>(indices.size()));
}

struct Window {
  std::vector<double> last, next;
  Window(const Fields& fields, std::int64_t rows)
      : last(values_of(fields.at("x"), 0, rows, lag_count)), next(values_of(fields.at("y"), 0, rows, 1)) {}
};

References forecasts(const TableSamples& samples) {
  const Tensor &x = samples.fields.at("x"), &y = samples.fields.at("y");
  const Window window(samples.fields, samples.training);
  const double constant = baseline::forecast_constant(window.next).mean;
  References found{
      .floor =
          Reference{"the mean return", rmse_of(y, samples.indices, [&](std::int64_t) { return constant; })},
      .conventional =
          Reference{
              "AR(1) by least squares",
              rmse_of(y, samples.indices,
                      [&](std::int64_t i) {
                        return baseline::forecast_ar1(window.last, window.next, x.at(i * lag_count)).mean;
                      })},
      .limit = {},
      .target = {}};
  // One set of weights of a network that could learn every row by heart is asked to be no worse than the
  // mean.
  found.target = found.floor->value;
  if (const auto expected = samples.fields.find("expected"); expected != samples.fields.end())
    found.limit =
        Reference{"the true model",
                  rmse_of(y, samples.indices, [&](std::int64_t i) { return expected->second.at(i); })};
  return found;
}

ForecastReferences densities(const Fields& fields, std::int64_t training,
                             std::span<const std::int64_t> indices) {
  const Tensor &x = fields.at("x"), &y = fields.at("y");
  const Window window(fields, training);
  double autoregression = 0, exact = 0;
  const auto expected = fields.find("expected"), deviation = fields.find("deviation");
  const bool known = expected != fields.end() && deviation != fields.end();
  for (const std::int64_t i : indices) {
    autoregression +=
        baseline::forecast_ar1(window.last, window.next, x.at(i * lag_count)).log_density(y.at(i));
    if (known)
      exact += baseline::Forecast{expected->second.at(i), deviation->second.at(i)}.log_density(y.at(i));
  }
  const auto count = static_cast<double>(indices.size());
  ForecastReferences found{.floor = Reference{"AR(1) by least squares", autoregression / count},
                           .ceiling = {},
                           .log_unit = std::log(fields.at("scale").at(0))};
  if (known) found.ceiling = Reference{"the process that made the data", exact / count};
  return found;
}

std::vector<Metric> rmse_of_returns(const Fields& fields, std::span<const std::int64_t> indices,
                                    std::span<const Tensor> outputs) {
  return {quality_metric("rmse", root_mean_square_error(fields.at("y"), indices, outputs[0]))};
}

std::string present_returns(const Fields& fields, const Predictions& found, page::Page& page) {
  Regression returns{.quantity = "Return",
                     .unit = "",
                     .truth = {},
                     .found = {},
                     .samples = {found.indices.begin(), found.indices.end()}};
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    returns.truth.push_back(fields.at("y").at(found.indices[i]));
    returns.found.push_back(found.outputs[0].at(static_cast<std::int64_t>(i)));
  }
  present_regression(page, returns);
  return {};
}

std::unique_ptr<Task> open_returns(const TaskSettings& settings, const Options& model) {
  const ReturnWindow window{.first = model.integer("first", 0, 1'000'000'000),
                            .rows = model.integer("window", 3, 10'000'000),
                            .ahead = model.integer("ahead", 0, 10'000'000)};
  Fields fields = read_returns(settings, window);
  const std::int64_t rows = fields.at("y").shape()[0];
  TableSpec spec;
  spec.generator = "mcmc";
  // Half a row more: the share is cut to whole rows.
  spec.training_share = (static_cast<double>(window.rows) + 0.5) / static_cast<double>(rows);
  spec.inputs = {{"x"}};
  spec.targets = {{"y"}};
  spec.quality = rmse_of_returns;
  spec.present = present_returns;
  spec.references = forecasts;
  spec.forecast_references = densities;
  return open_table_task(std::move(spec), std::move(fields), settings);
}

}  // namespace

Workload mcmc() {
  return {
      .name = "mcmc",
      .summary = "a Bayesian perceptron on returns, 22-40-40-1: superstep sample draws its posterior",
      .options = {{"units", "40", "of each hidden layer"},
                  {"window", "500", "rows that it learns from"},
                  {"first", "0", "row at which the window begins"},
                  {"ahead", "200", "rows behind the window that are forecast"}},
      .build = build_mcmc,
      .parameters = 2601,  // 22 * 40 + 40 + 40 * 40 + 40 + 40 + 1
      .flops = 5201,
      .inputs = {{"x", ElementType::f32, {lag_count}, "", "returns before, the last first, standardized"}},
      .outputs = {{"mean", ElementType::f32, {1}, "", "mean of the next return, standardized"}},
      .targets = {{"target", ElementType::f32, {1}, "", "the next return, standardized"}},
      .training = {.batch = 50,
                   .epochs = 30,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                   .optimizer = {.kind = transform::OptimizerKind::adamw, .weight_decay = 14},
                   .learning_rate = 1e-3,
                   .schedule = {.kind = Schedule::Kind::cosine}},
      .open = open_returns,
      .metrics = {{"rmse", ""}},
  };
}

}  // namespace superstep::workload
