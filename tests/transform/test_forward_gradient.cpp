// Gradients estimated in one forward pass: their mean, their variance, what is kept and what is refused; and
// whole Jacobians.
#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/trigonometry.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/training/derivative_graphs.h"
#include "superstep/transform/training/forward_gradient.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::Phase;
using op::Builder;
using op::Var;

// f = a'w / 2 + (q w)'w / 2 of five parameters; the counter is an input, the estimate an output.
struct Form {
  std::vector<double> slope, curvature, at;
  std::vector<double> gradient() const {
    std::vector<double> g(slope);
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += curvature[i] * at[i];
    return g;
  }
  double square() const {
    double sum = 0;
    for (const double g : gradient()) sum += g * g;
    return sum;
  }
};

const Form linear{{1, -2, 0.5, 3, -0.25}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}};
const Form quadratic{{1, -2, 0.5, 3, -0.25}, {2, 1, -1, 0.5, 4}, {0.5, -1, 2, 0.25, -0.75}};

// The last output of a graph of one input.
Tensor output_of(const Graph& graph, const Tensor& input) {
  return op::evaluate(graph, std::span(&input, 1)).outputs.back();
}

Tensor column(const std::vector<double>& values) {
  return Tensor::from<double>({static_cast<std::int64_t>(values.size())}, values);
}

Graph estimate_of(const Form& form, int tangents) {
  Graph graph("form");
  Builder b(graph);
  const Var counter = b.input("counter", ElementType::i64, {});
  const Var w = b.state("w", column(form.at));
  const Var f = op::reduce_sum(b.constant(column(form.slope)) * w) +
                op::reduce_sum(b.constant(column(form.curvature)) * w * w) * 0.5;
  b.output("g", forward_gradient(b, f, std::span(&w, 1), counter,
                                 {.tangents = tangents, .seed = 3, .streams = {}})[0]);
  return verified(graph);
}

// The means of |g|^2 and of g over draws, and how far off chance may bring them.
struct Moments {
  std::vector<double> mean, deviation;  // of the components
  double square = 0, square_deviation = 0;
};
Moments moments_of(const Form& form, int tangents, int draws) {
  const Graph graph = estimate_of(form, tangents);
  Moments m{std::vector<double>(5), std::vector<double>(5)};
  const auto n = static_cast<double>(draws);
  for (int draw = 0; draw < draws; ++draw) {
    const Tensor g = output_of(graph, Tensor::scalar<std::int64_t>(draw));
    double square = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const double value = g.at(static_cast<std::int64_t>(i));
      m.mean[i] += value / n, m.deviation[i] += value * value / n, square += value * value;
    }
    m.square += square / n, m.square_deviation += square * square / n;
  }
  for (std::size_t i = 0; i < 5; ++i) m.deviation[i] = std::sqrt(m.deviation[i] - m.mean[i] * m.mean[i]);
  m.square_deviation = std::sqrt(m.square_deviation - m.square * m.square);
  return m;
}

TEST(ForwardGradient, HasTheGradientAsItsMean) {
  constexpr int draws = 20000;
  for (const Form* form : {&linear, &quadratic}) {
    const Moments m = moments_of(*form, 1, draws);
    const std::vector<double> exact = form->gradient();
    double farthest = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(m.mean[i], exact[i], 3 * m.deviation[i] / std::sqrt(draws)) << i;
      farthest = std::max(farthest, std::abs(1.1 * exact[i] - m.mean[i]) / m.deviation[i]);
    }
    EXPECT_GT(farthest, 3 / std::sqrt(draws));  // a gradient that is off by 10 % would be noticed
  }
}

// E|g|^2 = (n + 1 + K) / K |a|^2.
TEST(ForwardGradient, HasTheVarianceOfItsDirectionsAndSeveralDivideIt) {
  constexpr int draws = 20000;
  for (const int tangents : {1, 4}) {
    const Moments m = moments_of(linear, tangents, draws);
    const double expected = (5.0 + 1 + tangents) / tangents * linear.square();
    EXPECT_NEAR(m.square, expected, 3 * m.square_deviation / std::sqrt(draws)) << tangents;
    EXPECT_GT(0.1 * expected, 3 * m.square_deviation / std::sqrt(draws)) << "10 % would not be noticed";
  }
}

// Two dense layers with a relu between, in f64.
Graph perceptron() {
  Graph graph("perceptron");
  Builder b(graph);
  const auto parameter = [&](const char* name, const Shape& shape, std::uint64_t seed) {
    return b.state(name, random_tensor(ElementType::f64, shape, seed));
  };
  const Var x = b.input("x", ElementType::f64, {4, 3});
  const Var hidden =
      op::relu(op::matmul(x, parameter("in.weight", {3, 6}, 1)) + parameter("in.bias", {6}, 2));
  b.output("y", op::matmul(hidden, parameter("out.weight", {6, 2}, 3)));
  return graph;
}

const OptimizerSpec plain{.kind = OptimizerKind::sgd};

Graph step_of(const std::string& gradient) {
  return verified(make_training_step(perceptron(), {}, plain,
                                     {.seed = 7, .gradient = gradient_mode_from_text(gradient)}));
}

std::map<std::string, Tensor> after_one_step(const std::string& gradient) {
  const Graph graph = step_of(gradient);
  std::vector<Tensor> inputs = random_inputs(graph, 20);
  inputs.back() = Tensor::scalar(1.0f);  // the rate: what a parameter loses is its gradient
  return op::evaluate(graph, inputs).states;
}

TEST(ForwardGradient, IsExactForLayersThatAreLeftToReverseMode) {
  const auto exact = after_one_step("reverse"), mixed = after_one_step("mixed:4:out"),
             forward = after_one_step("forward:4");
  for (const char* name : {"in.weight", "in.bias"}) expect_close(mixed.at(name), exact.at(name), 1e-13, name);
  // Directions do not depend on what else is estimated, the estimate does.
  EXPECT_NE(mixed.at("out.weight").at(0), exact.at("out.weight").at(0));
  EXPECT_NE(mixed.at("out.weight").at(0), forward.at("out.weight").at(0));
}

TEST(ForwardGradient, PassesDirectionalDerivativesAloneToTheUpdate) {
  const Graph graph = step_of("forward:4");
  EXPECT_TRUE(splittable(graph));
  EXPECT_EQ(std::ranges::count(graph.nodes(), Phase::backward, &graph::Node::phase), 4);
  for (const graph::Node& node : graph.nodes()) {
    if (node.phase == Phase::backward) {
      EXPECT_EQ(graph.type(node.outputs[0]).shape.rank(), 0) << node.name;
    }
  }
}

// The last reader of every forward value stands within the layer behind it: nothing is kept for later. The
// step of reverse mode is the negative control.
std::size_t longest_wait(const Graph& graph) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    for (graph::ValueId input : graph.nodes()[i].inputs) {
      if (!input.valid() || graph.value(input).kind != graph::ValueKind::computed) continue;
      const std::size_t made = graph.value(input).producer.index();
      const bool of_samples = graph.type(input).shape.rank() == 2 && graph.type(input).shape[0] == 4 &&
                              graph.nodes()[made].phase == Phase::forward;
      if (of_samples) longest = std::max(longest, i - made);
    }
  return longest;
}
Graph deep_step(const std::string& gradient) {
  Graph graph("deep");
  Builder b(graph);
  Var x = b.input("x", ElementType::f64, {4, 3});
  for (int layer = 0; layer < 8; ++layer)
    x = op::relu(
        op::matmul(x, b.state("w" + std::to_string(layer), random_tensor(ElementType::f64, {3, 3}, 5))));
  b.output("y", x);
  return make_training_step(graph, {}, plain, {.gradient = gradient_mode_from_text(gradient)});
}
TEST(ForwardGradient, KeepsNoActivationForLater) {
  EXPECT_LE(longest_wait(deep_step("forward")), 12u);
  EXPECT_GE(longest_wait(deep_step("reverse")), 24u);
}

TEST(ForwardGradient, IsAskedForInWords) {
  for (const char* text : {"reverse", "forward:1", "forward:16", "mixed:1:conv*,fc1", "mixed:8:fc?"})
    EXPECT_EQ(to_string(gradient_mode_from_text(text)), text);
  EXPECT_EQ(to_string(gradient_mode_from_text("forward")), "forward:1");
  EXPECT_EQ(to_string(gradient_mode_from_text("mixed:fc1")), "mixed:1:fc1");
  for (const char* text : {"", "backward", "reverse:2", "forward:", "forward:0", "forward:1025", "forward:x",
                           "mixed", "mixed:", "mixed:2:", "mixed:a,,b", "mixed:0:a"})
    EXPECT_THROW(gradient_mode_from_text(text), Error) << text;
  const GradientMode mode = gradient_mode_from_text("mixed:conv?,head");
  EXPECT_TRUE(is_forward(mode, "conv1.weight"));
  EXPECT_TRUE(is_forward(mode, "head.inner.bias"));
  EXPECT_FALSE(is_forward(mode, "conv10.weight"));
  EXPECT_FALSE(is_forward(mode, "header.bias"));
  try {
    step_of("mixed:in,middle");
    FAIL() << "an unknown layer was taken";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "middle: there is no layer of this name")) << error.what();
  }
}

// An operator without a forward rule is named.
TEST(ForwardGradient, RefusesAnOperatorWithoutARule) {
  op::Definition rough = op::get("Exp");
  rough.name = "superstep.Rough";
  rough.since_opset = 0;
  rough.vjp = nullptr, rough.jvp = nullptr;
  rough.decompose = [](const op::DerivativeContext& context) {
    return std::vector<Var>{op::exp(context.inputs[0])};
  };
  const op::AddedOperator added(rough);
  Graph graph("odd");
  Builder b(graph);
  const Var w = b.state("w", column({1, 2}));
  b.set_name("odd one");
  b.output("y", b.node1("superstep.Rough", {b.input("x", ElementType::f64, {2}) * w}));
  try {
    make_training_step(graph, {}, plain, {.gradient = {.kind = GradientMode::Kind::forward, .layers = {}}});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_TRUE(contains(error.what(), "operator superstep.Rough has no forward-mode derivative"))
        << error.what();
    EXPECT_TRUE(contains(error.what(), "odd one")) << error.what();
  }
}

// --- Jacobians

// More outputs than inputs (forward mode), and the other way round (reverse mode), against differences.
Graph bent(std::int64_t inputs, std::int64_t outputs) {
  Graph graph("bent");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f64, {inputs});
  const Var a = b.constant(random_tensor(ElementType::f64, {outputs, inputs}, 9));
  b.output("y", op::sin(op::matmul(a, x)));
  return graph;
}
void expect_jacobian_of_differences(std::int64_t inputs, std::int64_t outputs) {
  const Graph model = bent(inputs, outputs);
  const std::vector<std::string> by = {"x"};
  const Graph graph = verified(jacobian_graph(model, by));
  const Tensor x = random_tensor(ElementType::f64, {inputs}, 4);
  const Tensor jacobian = output_of(graph, x);
  ASSERT_EQ(jacobian.shape(), Shape({outputs, inputs}));
  constexpr double step = 1e-6;
  for (std::int64_t k = 0; k < inputs; ++k) {
    Tensor up = x.clone(), down = x.clone();
    up.set(k, x.at(k) + step), down.set(k, x.at(k) - step);
    const Tensor above = output_of(model, up), below = output_of(model, down);
    for (std::int64_t i = 0; i < outputs; ++i)
      EXPECT_NEAR(jacobian.at(i * inputs + k), (above.at(i) - below.at(i)) / (2 * step), 1e-8);
  }
}

TEST(Jacobian, IsThatOfDifferencesInEitherMode) {
  expect_jacobian_of_differences(2, 5);
  expect_jacobian_of_differences(5, 2);
  expect_jacobian_of_differences(1, 1);
}

// All columns by tangents side by side against a row at a time by the reverse pass: the same to rounding.
TEST(Jacobian, ByTangentsIsTheOneByReverseMode) {
  constexpr std::int64_t inputs = 3, outputs = 7;
  const std::vector<std::string> by = {"x"};
  const Graph model = bent(inputs, outputs);
  const Tensor x = random_tensor(ElementType::f64, {inputs}, 4);
  const Tensor jacobian = output_of(verified(jacobian_graph(model, by)), x);
  const Graph rows = verified(vjp_graph(model, by));
  double largest = 0;
  for (std::int64_t i = 0; i < outputs; ++i) {
    Tensor unit = Tensor::full(ElementType::f64, {outputs}, 0);
    unit.set(i, 1);
    const Tensor row = op::evaluate(rows, std::vector<Tensor>{x, unit}).outputs.back();
    for (std::int64_t k = 0; k < inputs; ++k) {
      EXPECT_NEAR(jacobian.at(i * inputs + k), row.at(k), 1e-15) << i << " " << k;
      largest = std::max(largest, std::abs(row.at(k)));
    }
  }
  EXPECT_GT(largest, 0.1);
}

TEST(Jacobian, OfSeveralOutputsByInputsAndStatesHasTheirExtents) {
  const std::vector<std::string> by = {"x", "out.weight"};
  const Graph graph = verified(jacobian_graph(perceptron(), by));
  const auto outputs = op::evaluate(graph, random_inputs(graph)).outputs;
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(graph.outputs()[1].name, "jacobian/y/x");
  EXPECT_EQ(outputs[1].shape(), Shape({4, 2, 4, 3}));
  EXPECT_EQ(outputs[2].shape(), Shape({4, 2, 6, 2}));
  // One sample's output does not depend on another sample.
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(outputs[1].at(3 + i), 0);
  try {
    const std::vector<std::string> x = {"x"};
    jacobian_graph(bent(5000, 5000), x);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "more than 4096 directions")) << error.what();
  }
}

}  // namespace
}  // namespace superstep::transform
