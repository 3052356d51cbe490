// The process's likelihood as a graph of operators: its slope by reverse mode through Cholesky and triangular
// systems, compiled for the CPU, against the closed form.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/design/gaussian_process.h"
#include "superstep/design/matern.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/cholesky.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/target.h"
#include "superstep/transform/training/differentiate.h"

namespace superstep::design {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using op::Builder;
using op::Var;

Tensor tensor_of(const MatrixXd& matrix) {
  Tensor tensor(ElementType::f64, {matrix.rows(), matrix.cols()});
  for (Index i = 0; i < matrix.rows(); ++i)
    for (Index j = 0; j < matrix.cols(); ++j) tensor.set(i * matrix.cols() + j, matrix(i, j));
  return tensor;
}

CurveData example() {
  RandomStream random(3);
  MatrixXd x(8, 2), curves(8, 3);
  for (double& value : x.reshaped()) value = random.uniform();
  for (Index i = 0; i < 8; ++i)
    for (Index e = 0; e < 3; ++e)
      curves(i, e) = std::sin(3 * x(i, 0)) + x(i, 1) / static_cast<double>(1 + e) + 0.1 * random.normal();
  return standardised(x, curves);
}

Hyperparameters parameters() { return {1.3, {0.7, 1.1}, {0.6, 1.7, 0.05}, 0.1}; }

// K with its variance, from squared differences along each setting. The least number keeps the root's slope
// finite where two settings are the same.
Var settings_kernel(Builder& b, const CurveData& data, const std::vector<Var>& logarithms) {
  Var squares;
  for (Index d = 0; d < data.settings.cols(); ++d) {
    const VectorXd x = data.settings.col(d);
    const MatrixXd apart = x.replicate(1, x.size()) - x.transpose().replicate(x.size(), 1);
    const Var part = b.constant(tensor_of(apart.cwiseAbs2())) *
                     op::exp(logarithms[static_cast<std::size_t>(1 + d)] * -2.0);
    squares = squares.valid() ? squares + part : part;
  }
  const Var s = op::sqrt(squares * 5.0 + 1e-30);
  return (s + 1.0 + s * s / 3.0) * op::exp(s * -1.0) * op::exp(logarithms[0]);
}

// Inputs: log variance, log lengths, log noise; outputs: log p(curves), and its slope by each.
graph::Graph likelihood(const CurveData& data, const Hyperparameters& p) {
  graph::Graph graph("likelihood");
  Builder b(graph);
  const std::int64_t n = data.curves.rows(), e = data.curves.cols();
  std::vector<Var> logarithms;
  for (Index k = 0; k < data.settings.cols() + 2; ++k)
    logarithms.push_back(b.input("log" + std::to_string(k), ElementType::f64, {1}));
  MatrixXd curve_kernel = p.curve.smooth(e);
  curve_kernel.diagonal().array() += p.curve.delta;
  const Var k = op::reshape(settings_kernel(b, data, logarithms), {n, 1, n, 1});
  const Var product =
      op::reshape(k * op::reshape(b.constant(tensor_of(curve_kernel)), {1, e, 1, e}), {n * e, n * e});
  const Var noise = b.constant(tensor_of(MatrixXd::Identity(n * e, n * e))) * op::exp(logarithms.back());
  const Var factor = op::cholesky(product + noise);
  const Var y = b.constant(tensor_of(MatrixXd(MatrixXd(data.curves.transpose()).reshaped())));
  const Var white = op::triangular_solve(factor, y);
  const Var twice = op::reduce_sum(white * white) + op::log_determinant_of_factor(factor);
  const Var value = (twice + static_cast<double>(n * e) * std::log(2 * std::numbers::pi)) * -0.5;
  b.output("value", value);
  const std::vector<Var> slopes = transform::gradient(b, value, logarithms);
  for (std::size_t at = 0; at < slopes.size(); ++at) b.output("slope" + std::to_string(at), slopes[at]);
  return graph;
}

std::vector<double> outputs_of(const char* target, const graph::Graph& graph,
                               std::span<const double> logarithms) {
  const auto executable = target::find_target(target).compile([&](std::int64_t) { return graph; },
                                                              {.batch = 1, .micro_batch = 1});
  std::vector<Tensor> inputs, outputs;
  for (double logarithm : logarithms) inputs.push_back(Tensor::from({1}, std::vector<double>{logarithm}));
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  executable->run(inputs, outputs);
  std::vector<double> values;
  for (const Tensor& output : outputs) values.push_back(output.at(0));
  return values;
}

void expect_closed_form(const char* target, double tolerance) {
  const CurveData data = example();
  const Hyperparameters p = parameters();
  std::vector<double> exact(packed(p).size());
  const double value = log_marginal(data, p, exact);
  const std::vector<double> logarithms{std::log(p.variance), std::log(p.lengths[0]), std::log(p.lengths[1]),
                                       std::log(p.noise)};
  const std::vector<double> found = outputs_of(target, likelihood(data, p), logarithms);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_NEAR(found[0], value, tolerance * (1 + std::abs(value)));
  const double expected[] = {exact[0], exact[1], exact[2], exact.back()};
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_NEAR(found[1 + k], expected[k], tolerance * (1 + std::abs(expected[k]))) << target << " " << k;
  EXPECT_GT(std::abs(found[1] - 1.01 * expected[0]), 1e-3 * std::abs(expected[0]))
      << "a slope off by 1 % is seen";
}

TEST(LikelihoodGraph, SlopesThroughTheFactorAreTheClosedFormByDefinition) {
  expect_closed_form("reference", 1e-9);
}
TEST(LikelihoodGraph, AndAsTheProcessorComputesThem) { expect_closed_form("cpu", 1e-4); }

}  // namespace
}  // namespace superstep::design
