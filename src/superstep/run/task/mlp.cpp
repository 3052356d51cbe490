// The perceptron's data: a smooth function of sixteen variables.
#include <cmath>

#include "superstep/baseline/polynomial.h"
#include "superstep/baseline/regression.h"
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

std::vector<Metric> rmse(const Fields& fields, std::span<const std::int64_t> indices,
                         std::span<const Tensor> outputs) {
  return {quality_metric("rmse", root_mean_square_error(fields.at("target"), indices, outputs[0]))};
}

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

}  // namespace

std::unique_ptr<Task> open_mlp_task(const TaskSettings& settings) {
  return open_table_task({.generator = "mlp",
                          .settings = {},
                          .default_samples = 8192,
                          .group = {},
                          .inputs = {{"x"}},
                          .targets = {{"target"}},
                          .more = {},
                          .quality = rmse,
                          .present = present_function_values,
                          .references = ridge_regressions,
                          .reference_fields = {}},
                         settings);
}

}  // namespace superstep::run
