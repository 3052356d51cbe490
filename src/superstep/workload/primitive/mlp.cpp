// A tiny multi-layer perceptron, 16-64-64-64-1 with ReLU, on a smooth function of sixteen variables: what is
// left of a step when there is hardly any arithmetic.
//
// x f32 [N, 16] -> y f32 [N, 1].
#include <fmt/format.h>

#include <cmath>

#include "superstep/baseline/polynomial.h"
#include "superstep/baseline/regression.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

graph::Graph build_mlp(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const double dropped = options.number("dropout", 0, 0.9);
  graph::Graph graph("mlp");
  Builder b(graph);
  Layers layers(b, seed);
  Var y = b.input("x", ElementType::f32, {batch, 16});
  for (int i = 1; i <= 3; ++i) {
    const std::string name = fmt::format("fc{}", i);
    y = layers.relu(layers.dense(y, name, 64));
    if (dropped > 0) y = layers.dropout(y, name + ".dropout", dropped);
  }
  b.output("y", layers.dense(y, "fc4", 1));
  return graph;
}

// --- what others reach

Eigen::MatrixXd rows_of(const Tensor& field, std::span<const std::int64_t> indices) {
  const std::int64_t width = field.element_count() / field.shape()[0];
  Eigen::MatrixXd rows(static_cast<Eigen::Index>(indices.size()), width);
  for (Eigen::Index i = 0; i < rows.rows(); ++i)
    for (Eigen::Index k = 0; k < width; ++k)
      rows(i, k) = field.at(indices[static_cast<std::size_t>(i)] * width + k);
  return rows;
}

References ridge_regressions(const TableSamples& samples) {
  constexpr double strength = 1e-6;
  const Tensor &x = samples.fields.at("x"), &y = samples.fields.at("target");
  const auto known = first_samples(samples.training);
  const Eigen::MatrixXd x_known = rows_of(x, known), x_others = rows_of(x, samples.indices);
  const Eigen::VectorXd y_known = rows_of(y, known), y_others = rows_of(y, samples.indices);
  const auto error = [&](const Eigen::MatrixXd& fitted, const Eigen::MatrixXd& judged) {
    const Eigen::VectorXd found = baseline::fit_ridge(fitted, y_known, strength).predict_all(judged);
    return std::sqrt((found - y_others).squaredNorm() / static_cast<double>(found.size()));
  };
  return {.floor = Reference{"ridge regression", error(x_known, x_others)},
          .conventional =
              Reference{"ridge with squares and products", error(baseline::with_products_of_two(x_known),
                                                                 baseline::with_products_of_two(x_others))},
          .limit = {},
          .target = {}};
}

// --- data and pictures

std::string present_function_values(const Fields& fields, const Predictions& found, page::Page& page) {
  const Tensor& truth = fields.at("target");
  Regression regression{.quantity = "y",
                        .unit = "",
                        .truth = {},
                        .found = {},
                        .samples = {found.indices.begin(), found.indices.end()}};
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    regression.truth.push_back(truth.at(found.indices[i]));
    regression.found.push_back(found.outputs[0].at(static_cast<std::int64_t>(i)));
    if (!found.spread.empty()) regression.spread.push_back(found.spread[0].at(static_cast<std::int64_t>(i)));
  }
  present_regression(page, regression);
  return {};
}

std::unique_ptr<Task> open_function_values(const TaskSettings& settings, const Options&) {
  return open_table_task({.generator = "mlp",
                          .settings = {},
                          .default_samples = 8192,
                          .group = {},
                          .inputs = {{"x"}},
                          .targets = {{"target"}},
                          .more = {},
                          .quality = rmse_of_target,
                          .spread_of = "target",
                          .present = present_function_values,
                          .references = ridge_regressions,
                          .reference_fields = {}},
                         settings);
}

}  // namespace

Workload mlp() {
  return {
      .name = "mlp",
      .summary = "a tiny perceptron, 16-64-64-64-1: the overhead of a step",
      .options = {{"dropout", "0", "share of a hidden layer's outputs that training drops"}},
      .build = build_mlp,
      .parameters = 9473,
      .flops = 18945,
      .inputs = {{"x", ElementType::f32, {16}, "", "features"}},
      .outputs = {{"y", ElementType::f32, {1}, "", "a number"}},
      .targets = {{"target", ElementType::f32, {1}, "", "a number"}},
      .training = {.batch = 64,
                   .epochs = 60,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 3e-3,
                   .schedule = {.kind = Schedule::Kind::cosine}},
      // Of the wall model that has these layers. Neither its batch nor how long it waits before it stops
      // early is said: those are chosen here.
      .published =
          Recipe{.batch = 64,
                 .epochs = 500,
                 .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                 .optimizer = {.kind = transform::OptimizerKind::adam},
                 .learning_rate = 2e-4,
                 .schedule = {.kind = Schedule::Kind::plateau,
                              .factor = 0.5,
                              .patience = 20,
                              .monitor = "rmse",
                              .give_up = 50},
                 .model_options = {"dropout=0.1"},
                 .source = "ANL-23/15, wall model of film cooling; batch and early stop chosen here"},
      .by_default = RecipeName::quick,
      .open = open_function_values,
      .metrics = {{"rmse", ""}},
      // About what ridge regression reaches with squares and products.
      .target = QualityTarget{.metric = "rmse", .value = 0.1},
  };
}

}  // namespace superstep::workload
