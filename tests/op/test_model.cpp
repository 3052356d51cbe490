// A whole model through evaluation and both derivatives: BraggNN's layers (design of the workload) at a batch
// of eight.
#include <chrono>
#include <cmath>

#include "superstep/op/core/derivative.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

Tensor narrow_to_f32(const Tensor& tensor) { return tensor.converted(ElementType::f32); }

class Model {
 public:
  explicit Model(Builder& builder) : builder_(builder) {}

  Var parameter(Shape shape, double scale) {
    const std::string name = "p" + std::to_string(parameters.size());
    parameters.push_back(
        builder_.state(name, narrow_to_f32(random_tensor(std::move(shape), parameters.size(), scale))));
    return parameters.back();
  }
  Var convolution(Var x, std::int64_t channels, std::int64_t kernel) {
    const std::int64_t in = x.shape()[1];
    const double scale = 1 / std::sqrt(static_cast<double>(in * kernel * kernel));
    return conv(x, parameter({channels, in, kernel, kernel}, scale), parameter({channels}, 0.1));
  }
  Var dense(Var x, std::int64_t width) {
    const double scale = 1 / std::sqrt(static_cast<double>(x.shape()[1]));
    return gemm(x, parameter({width, x.shape()[1]}, scale), parameter({width}, 0.1), {.transpose_b = true});
  }
  Var attention(Var x) {
    const std::int64_t n = x.shape()[0], c = 32, pixels = x.shape()[2] * x.shape()[3];
    const Var theta = transpose(reshape(convolution(x, c, 1), {n, c, pixels}), {0, 2, 1});
    const Var phi = reshape(convolution(x, c, 1), {n, c, pixels});
    const Var g = transpose(reshape(convolution(x, c, 1), {n, c, pixels}), {0, 2, 1});
    const Var mixed = matmul(softmax(matmul(theta, phi)), g);
    return x + convolution(reshape(transpose(mixed, {0, 2, 1}), {n, c, x.shape()[2], x.shape()[3]}), 64, 1);
  }
  Var positions(Var patch) {
    Var x = attention(convolution(patch, 64, 3));
    x = leaky_relu(convolution(leaky_relu(x), 32, 3));
    x = flatten(leaky_relu(convolution(x, 8, 3)));
    for (std::int64_t width : {16, 8, 4, 2}) x = leaky_relu(dense(x, width));
    return dense(x, 2);
  }

  std::vector<Var> parameters;

 private:
  Builder& builder_;
};

}  // namespace

TEST(Model, ForwardAndBackwardOfBraggNN) {
  graph::Graph graph("braggnn");
  Builder builder(graph);
  Model model(builder);
  const Var patch = builder.input("patch", ElementType::f32, {8, 1, 11, 11});
  const Var target = builder.input("target", ElementType::f32, {8, 2});
  const Var difference = model.positions(patch) - target;
  const Var loss = reduce_mean(difference * difference);
  builder.output("loss", loss);
  std::int64_t count = 0;
  for (Var parameter : model.parameters) count += parameter.shape().element_count();
  EXPECT_EQ(count, 33172);  // as the workload states it

  const Cost forward_cost = cost(graph);
  EXPECT_NEAR(forward_cost.flops / 8, 2.0 * 2.09e6, 0.1 * 2.0 * 2.09e6);  // 2.09 M multiply-accumulates

  const Var one[] = {builder.scalar(ElementType::f32, 1)};
  const std::vector<Var> gradients = reverse(builder, 0, std::span(&loss, 1), one, model.parameters);
  for (std::size_t i = 0; i < gradients.size(); ++i) builder.output("g" + std::to_string(i), gradients[i]);
  const Status status = graph::verify(graph, infer_types);
  ASSERT_TRUE(status) << status.error().what();

  const Tensor inputs[] = {narrow_to_f32(random_tensor({8, 1, 11, 11}, 70)),
                           narrow_to_f32(random_tensor({8, 2}, 71))};
  const auto begin = std::chrono::steady_clock::now();
  const Evaluation first = evaluate(graph, inputs), second = evaluate(graph, inputs);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 2;
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 5);  // "well under a few seconds", even on a busy machine
  for (std::size_t i = 0; i < first.outputs.size(); ++i)
    EXPECT_EQ(values(first.outputs[i]), values(second.outputs[i])) << "output " << i;

  // A small step against the gradient lowers the loss by the step times the gradient's square.
  std::map<std::string, Tensor> states;
  double expected = 0;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const Tensor& gradient = first.outputs[p + 1];
    Tensor moved = graph.value(model.parameters[p].id()).data.clone();
    for (std::int64_t i = 0; i < moved.element_count(); ++i) {
      moved.set(i, moved.at(i) - 1e-3 * gradient.at(i));
      expected += 1e-3 * gradient.at(i) * gradient.at(i);
    }
    states["p" + std::to_string(p)] = moved;
  }
  EXPECT_NEAR(first.outputs[0].at(0) - evaluate(graph, inputs, states).outputs[0].at(0), expected,
              0.05 * expected);
}

}  // namespace superstep::op::test
