#include <functional>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/op/window/pooling.h"
#include "superstep/transform/training/differentiate.h"
#include "superstep/transform/training/differentiation_guide.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;

// A scalar function of f64 states "p0", "p1", ... as a whole small model.
struct Model {
  const char* name;
  std::vector<Shape> parameters;
  std::function<Var(Builder&, const std::vector<Var>&)> build;
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

std::vector<Var> add_parameters(Builder& builder, const Model& model) {
  std::vector<Var> parameters;
  for (std::size_t i = 0; i < model.parameters.size(); ++i)
    parameters.push_back(
        builder.state("p" + std::to_string(i), random_tensor(ElementType::f64, model.parameters[i], 10 + i)));
  return parameters;
}

double value_at(const Graph& graph, const std::map<std::string, Tensor>& states) {
  return op::evaluate(graph, {}, states).outputs[0].at(0);
}

std::map<std::string, Tensor> states_of(const Graph& graph) {
  std::map<std::string, Tensor> states;
  for (graph::ValueId id : graph.states()) states[graph.value(id).name] = graph.value(id).data;
  return states;
}

std::map<std::string, Tensor> moved(std::map<std::string, Tensor> states, const Model& model, double step) {
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    Tensor& tensor = states["p" + std::to_string(i)];
    const Tensor direction = random_tensor(ElementType::f64, tensor.shape(), 100 + i);
    tensor = tensor.clone();
    for (std::int64_t k = 0; k < tensor.element_count(); ++k)
      tensor.set(k, tensor.at(k) + step * direction.at(k));
  }
  return states;
}

Graph value_graph(const Model& model) {
  Graph graph;
  Builder builder(graph);
  const std::vector<Var> parameters = add_parameters(builder, model);
  builder.output("y", model.build(builder, parameters));
  return verified(graph);
}

// (f(p + h v) - f(p - h v)) / 2h along the direction that moved() takes.
double difference_quotient(const Model& model) {
  const Graph graph = value_graph(model);
  const double h = 1e-5;
  const auto states = states_of(graph);
  return (value_at(graph, moved(states, model, h)) - value_at(graph, moved(states, model, -h))) / (2 * h);
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

// Outputs "d0", "d1", ...: what `derive` makes of the function.
using Derive = std::function<std::vector<Var>(Builder&, Var, const std::vector<Var>&)>;

Graph derivative_graph(const Model& model, const Derive& derive) {
  Graph graph;
  Builder builder(graph);
  const std::vector<Var> parameters = add_parameters(builder, model);
  const Var y = model.build(builder, parameters);
  const std::vector<Var> derivatives = derive(builder, y, parameters);
  for (std::size_t i = 0; i < derivatives.size(); ++i)
    builder.output("d" + std::to_string(i), derivatives[i]);
  return verified(graph);
}

std::vector<Tensor> gradients_at(const Graph& graph, const std::map<std::string, Tensor>& states) {
  return op::evaluate(graph, {}, states).outputs;
}

std::vector<Var> all_gradients(Builder& builder, Var y, const std::vector<Var>& parameters) {
  std::vector<Var> gradients = gradient(builder, y, parameters);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = or_zeros(gradients[i], parameters[i]);
  return gradients;
}

std::vector<Var> directions(Builder& builder, const std::vector<Var>& parameters) {
  std::vector<Var> result;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    result.push_back(builder.constant(random_tensor(ElementType::f64, parameters[i].shape(), 100 + i)));
  return result;
}

double directional_by_reverse(const Model& model) {
  const std::vector<Tensor> gradients = op::evaluate(derivative_graph(model, all_gradients), {}).outputs;
  double sum = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    sum += dot(gradients[i], random_tensor(ElementType::f64, model.parameters[i], 100 + i));
  return sum;
}

double directional_by_forward(const Model& model) {
  const Graph graph = derivative_graph(model, [](Builder& b, Var y, const std::vector<Var>& parameters) {
    return jvp(b, std::span(&y, 1), parameters, directions(b, parameters));
  });
  return op::evaluate(graph, {}).outputs[0].at(0);
}

Var tanh_layer(Var x, Var w, Var b) { return op::tanh(op::gemm(x, w, b)); }

Var fixed_input(Builder& builder, const Shape& shape) {
  return builder.constant(random_tensor(ElementType::f64, shape, 77));
}

Var mlp(Builder& b, const std::vector<Var>& p) {
  const Var h = tanh_layer(fixed_input(b, {4, 3}), p[0], p[1]);
  const Var y = op::gemm(h, p[2], p[3]);
  return op::reduce_mean(y * y);
}

// Convolution, leaky activation, pooling, attention over positions, as in the X-ray models.
Var convolutional(Builder& b, const std::vector<Var>& p) {
  const Var x = op::leaky_relu(op::conv(fixed_input(b, {2, 1, 6, 6}), p[0], p[1]), 0.1);
  const Var pooled = op::max_pool(x, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  const Var rows = op::reshape(pooled, {2, 2, 4});
  const Var weights = op::softmax(op::matmul(op::swap_axes(rows, 1, 2), rows), -1);
  const Var mixed = op::matmul(rows, weights);
  return op::reduce_mean(op::exp(op::gemm(op::reshape(mixed, {2, 8}), p[2])));
}

Var shared_weights(Builder& b, const std::vector<Var>& p) {
  const Var x = fixed_input(b, {3, 3});
  const Var once = tanh_layer(x, p[0], p[1]), twice = tanh_layer(once, p[0], p[1]);
  return op::reduce_sum(op::sigmoid(twice * once) / (op::exp(p[1]) + 1.0));
}

const Model models[] = {
    {"mlp", {{3, 5}, {5}, {5, 2}, {2}}, mlp},
    {"convolutional", {{2, 1, 3, 3}, {2}, {8, 2}}, convolutional},
    {"shared weights", {{3, 3}, {3}}, shared_weights},
};

class Differentiate : public ::testing::TestWithParam<Model> {};

TEST_P(Differentiate, ReverseModeIsTheDifferenceQuotient) {
  const double expected = difference_quotient(GetParam());
  EXPECT_NEAR(directional_by_reverse(GetParam()), expected, 1e-7 * std::max(1.0, std::abs(expected)));
}

TEST_P(Differentiate, ForwardModeIsReverseMode) {
  const double expected = directional_by_reverse(GetParam());
  EXPECT_NEAR(directional_by_forward(GetParam()), expected, 1e-12 * std::max(1.0, std::abs(expected)));
}

// A gradient that is 0.1 % off must not pass for the difference quotient.
TEST_P(Differentiate, TheCheckWouldSeeAWrongGradient) {
  const double expected = difference_quotient(GetParam());
  EXPECT_GT(std::abs(1.001 * directional_by_reverse(GetParam()) - expected),
            1e-7 * std::max(1.0, std::abs(expected)));
}

TEST_P(Differentiate, HessianVectorProductIsTheDifferenceOfGradients) {
  const Model& model = GetParam();
  const Graph product = derivative_graph(model, [](Builder& b, Var y, const std::vector<Var>& parameters) {
    auto result = hessian_vector_product(b, y, parameters, directions(b, parameters));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = or_zeros(result[i], parameters[i]);
    return result;
  });
  const Graph gradients = derivative_graph(model, all_gradients);
  const auto states = states_of(gradients);
  const double h = 1e-5;
  const auto plus = gradients_at(gradients, moved(states, model, h));
  const auto minus = gradients_at(gradients, moved(states, model, -h));
  const auto found = op::evaluate(product, {}).outputs;
  double worst = 0, largest = 1e-3;
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::int64_t k = 0; k < found[i].element_count(); ++k) {
      const double expected = (plus[i].at(k) - minus[i].at(k)) / (2 * h);
      worst = std::max(worst, std::abs(found[i].at(k) - expected));
      largest = std::max(largest, std::abs(expected));
    }
  EXPECT_LT(worst, 1e-6 * largest);
}

INSTANTIATE_TEST_SUITE_P(Models, Differentiate, ::testing::ValuesIn(models));

// --- closed forms

TEST(Gradient, OfAQuadraticIsLinearAndItsHessianConstant) {
  Graph graph;
  Builder b(graph);
  const Var x = b.state("x", Tensor::from<double>({2}, {3, -1}));
  const Var y = op::reduce_sum(x * x * x);
  const Var v = b.constant(Tensor::from<double>({2}, {1, 2}));
  b.output("g", gradient(b, y, std::span(&x, 1))[0]);
  b.output("h", hessian_vector_product(b, y, std::span(&x, 1), std::span(&v, 1))[0]);
  const auto found = op::evaluate(verified(graph), {}).outputs;
  EXPECT_DOUBLE_EQ(found[0].at(0), 27);  // 3 x^2
  EXPECT_DOUBLE_EQ(found[0].at(1), 3);
  EXPECT_DOUBLE_EQ(found[1].at(0), 18);  // 6 x v
  EXPECT_DOUBLE_EQ(found[1].at(1), -12);
}

TEST(Gradient, CanBeTakenAgainAndAgain) {
  Graph graph;
  Builder b(graph);
  const Var x = b.state("x", Tensor::scalar<double>(2));
  Var y = op::exp(x * 3.0);
  for (int order = 0; order < 3; ++order) y = gradient(b, y, std::span(&x, 1))[0];
  b.output("y", y);
  EXPECT_NEAR(op::evaluate(verified(graph), {}).outputs[0].at(0), 27 * std::exp(6.0), 1e-9);
}

TEST(Gradient, ByAValueInTheMiddle) {
  Graph graph;
  Builder b(graph);
  const Var x = b.state("x", Tensor::scalar<double>(0.5));
  const Var h = op::exp(x), y = h * h;
  b.output("dh", gradient(b, y, std::span(&h, 1))[0]);
  EXPECT_NEAR(op::evaluate(verified(graph), {}).outputs[0].at(0), 2 * std::exp(0.5), 1e-12);
}

TEST(Gradient, IsInvalidWhereNothingDepends) {
  Graph graph;
  Builder b(graph);
  const Var wrt[] = {b.state("x", Tensor::scalar<double>(1)), b.state("z", Tensor::scalar<double>(1))};
  const auto found = gradient(b, wrt[0] * wrt[0], wrt);
  EXPECT_TRUE(found[0].valid());
  EXPECT_FALSE(found[1].valid());
  EXPECT_EQ(or_zeros(found[1], wrt[1]).type(), wrt[1].type());
}

TEST(Gradient, StopsWhereItIsTold) {
  Graph graph;
  Builder b(graph);
  const Var x = b.state("x", Tensor::scalar<double>(3));
  const Var fixed = x * 2.0, y = x * fixed;
  b.output("d", gradient(b, y, std::span(&x, 1), {.stop = std::span(&fixed, 1)})[0]);
  EXPECT_DOUBLE_EQ(op::evaluate(verified(graph), {}).outputs[0].at(0), 6);  // not 12
}

TEST(Gradient, PassesNoIntegers) {
  Graph graph;
  Builder b(graph);
  const Var x = b.state("x", Tensor::from<double>({3}, {1, 5, 2}));
  const Var place = op::argmax(x, 0, true);
  EXPECT_TRUE(b.graph().type(place.id()).element == ElementType::i64);
  const Var y = op::reduce_sum(x) + b.node1("Cast", {place}, {{"to", std::int64_t{11}}});
  b.output("d", gradient(b, op::reduce_sum(y), std::span(&x, 1))[0]);
  EXPECT_DOUBLE_EQ(op::evaluate(verified(graph), {}).outputs[0].at(1), 1);
}

TEST(Gradient, NamesNodesAndTakesThePhase) {
  Graph graph;
  Builder b(graph);
  const Var x = b.state("x", Tensor::scalar<double>(3));
  b.set_name("square");
  const Var y = x * x;
  b.set_name("outer");
  b.set_phase(graph::Phase::backward);
  gradient(b, op::exp(y), std::span(&x, 1));
  EXPECT_EQ(b.name(), "outer");
  EXPECT_EQ(graph.nodes().back().name, "d(square)");
  EXPECT_EQ(graph.nodes().back().phase, graph::Phase::backward);
}

template <class Work>
std::string error_of(const Work& work) {
  Graph graph;
  Builder b(graph);
  try {
    work(b, b.state("x", Tensor::from<double>({2}, {1, 2})));
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Gradient, RefusesWithTheReason) {
  EXPECT_TRUE(contains(error_of([](Builder& b, Var x) { gradient(b, x, std::span(&x, 1)); }),
                       "a gradient is of one floating-point number, not of f64[2]"));
  EXPECT_TRUE(contains(error_of([](Builder& b, Var x) {
                         const Var seed = b.scalar(ElementType::f64, 1);
                         vjp(b, std::span(&x, 1), std::span(&seed, 1), std::span(&x, 1));
                       }),
                       "cotangent 0 is f64[], its value f64[2]"));
}

TEST(Gradient, NamesTheNodeWhoseRuleRefuses) {
  EXPECT_TRUE(contains(error_of([](Builder& b, Var x) {
                         b.set_name("drop");
                         const Var ratio = b.scalar(ElementType::f64, 0.5);
                         const Var training = b.constant(Tensor::scalar(true));
                         const Var y = b.node1("Dropout", {x, ratio, training});
                         gradient(b, op::reduce_sum(y), std::span(&x, 1));
                       }),
                       "derivative of node 'drop' (Dropout): the mask output is needed"));
}

TEST(Gradient, NamesTheNodeWithoutADerivative) {
  Graph graph;
  Builder b(graph);
  const Var x = b.state("x", Tensor::from<float>({2}, {1, 2}));
  b.set_name("quantize");
  const Var scale = b.node("DynamicQuantizeLinear", std::span(&x, 1), {}, 3)[1];
  try {
    gradient(b, scale, std::span(&x, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(),
                         "node 'quantize' (DynamicQuantizeLinear): operator DynamicQuantizeLinear has no "
                         "reverse-mode derivative"));
  }
}

TEST(Guide, FollowsOnlyWhatMatters) {
  const Graph graph = graph_of(R"(input %x : f32[2]
state %w : f32[2] = [1.0, 2.0]
%a : f32[2] = Mul(%x, %w) "on"
%b : f32[2] = Exp(%x) "not on w"
%c : f32[2] = Neg(%a) "not to y"
%y : f32[2] = Add(%a, %b) "on too"
output "y" = %y
output "c" = %c)");
  const graph::ValueId w = graph.find_value("w"), y = graph.find_value("y");
  const DifferentiationGuide guide = make_guide(graph, std::span(&w, 1), std::span(&y, 1));
  std::vector<std::string> path;
  for (graph::NodeId id : guide.path) path.push_back(graph.node(id).name);
  EXPECT_EQ(path, (std::vector<std::string>{"on", "on too"}));
  EXPECT_FALSE(guide.is_active(graph.find_value("b")));
  EXPECT_FALSE(guide.is_active(graph.find_value("x")));
  const graph::ValueId a = graph.find_value("a");
  EXPECT_TRUE(make_guide(graph, std::span(&w, 1), std::span(&y, 1), std::span(&a, 1)).path.empty());
}

}  // namespace
}  // namespace superstep::transform
