#include <limits>
#include <utility>

#include "superstep/graph/text.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/rows/reduction.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

// A counter that adds its input: y = total + x, total <- y.
graph::Graph accumulator() {
  graph::Graph graph("accumulator");
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {2});
  const Var total = builder.state("total", f64({2}, {10, 20})), y = total + x;
  builder.output("y", y);
  builder.update(total, y);
  return graph;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Evaluate, KeepsAndUpdatesState) {
  const graph::Graph graph = accumulator();
  const std::vector<Tensor> inputs = {f64({2}, {1, 2})};
  const Evaluation first = evaluate(graph, inputs), second = evaluate(graph, inputs, first.states);
  expect_values(first.outputs[0], {11, 22});
  expect_values(second.outputs[0], {12, 24});
  expect_values(second.states.at("total"), {12, 24});
  expect_values(graph.value(graph.states()[0]).data, {10, 20});  // the graph itself is unchanged
}

TEST(Evaluate, RefusesWrongInputs) {
  const graph::Graph graph = accumulator();
  EXPECT_EQ(message_of([&] { evaluate(graph, {}); }), "accumulator: takes 1 inputs, 0 were given");
  EXPECT_EQ(message_of([&] {
              evaluate(graph, std::vector{f64({3}, {1, 2, 3})});
            }),
            "input x: is f64[3], expected f64[2]");
  EXPECT_EQ(message_of([&] {
              evaluate(graph, std::vector{f64({2}, {1, 2})}, {{"total", i64({2}, {0, 0})}});
            }),
            "state total: is i64[2], expected f64[2]");
}

TEST(Evaluate, NamesTheNodeThatFails) {
  graph::Graph graph;
  Builder builder(graph);
  builder.set_name("embedding");
  const Var table = builder.input("table", ElementType::f32, {4, 2}),
            index = builder.input("i", ElementType::i64, {1});
  builder.output("y", builder.node1("Gather", {table, index}));
  const std::vector<Tensor> inputs = {Tensor(ElementType::f32, {4, 2}), i64({1}, {9})};
  EXPECT_EQ(message_of([&] { evaluate(graph, inputs); }),
            "Gather 'embedding': index 9 of input indices lies outside [-4, 3]");
}

TEST(Builder, NamesOperatorNodeAndCounts) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f32, {4, 2});
  const NameScope scope(builder, "layer1");
  EXPECT_EQ(message_of([&] { builder.node1("MatMul", {x}); }), "MatMul 'layer1': takes 2 to 2 inputs, not 1");
  EXPECT_EQ(message_of([&] {
              builder.node1("MatMul", {Var(), x});
            }),
            "MatMul 'layer1': input 0 cannot be left out");
  EXPECT_NE(message_of([&] {
              builder.node1("Mat", {x, x});
            }).find("there is no such operator"),
            std::string::npos);
}

TEST(GradientChecker, AcceptsRightAndRefusesWrongPoints) {
  const std::vector<Tensor> point = {f64({2}, {0.5, -1})};
  EXPECT_TRUE(check_gradients(OF(exp(x[0])), point));
  const Status nothing = check_gradients(OF(exp(x[0])), std::vector{i64({2}, {1, 2})});
  ASSERT_FALSE(nothing);
  const Status integers = check_gradients(OF(x[0]), std::vector{i64({2}, {1, 2})});
  ASSERT_FALSE(integers);
  EXPECT_NE(std::string(integers.error().what()).find("there is nothing to differentiate"),
            std::string::npos);
  const Status infinite = check_gradients(OF(log(x[0])), std::vector{f64({1}, {-1})});
  ASSERT_FALSE(infinite);
  EXPECT_EQ(infinite.error().code(), ErrorCode::diverged);
}

TEST(GradientChecker, SaysWhichInputAndBothNumbers) {
  // Wrong by the second input alone.
  const Function wrong = [](Builder& b, std::span<const Var> x) {
    return std::vector{x[0] + x[1] * (b.graph().name() == "forward mode" ? 1.001 : 1.0)};
  };
  const Status status = check_gradients(wrong, std::vector{f64({1}, {1}), f64({1}, {1})});
  ASSERT_FALSE(status);
  const std::string text = status.error().what();
  EXPECT_EQ(text.find("derivative by input 1: forward mode gives "), 0u) << text;
  EXPECT_NE(text.find("finite differences "), std::string::npos);
}

TEST(GradientChecker, SeesAWrongSecondDerivative) {
  // Right as often as the first order asks, wrong by 0.1 % in the reverse mode of the second.
  int calls = 0, first_order = std::numeric_limits<int>::max();
  const Function wrong = [&](Builder& b, std::span<const Var> x) {
    const bool late = ++calls > first_order && b.graph().name() == "reverse mode";
    const Var cube = x[0] * x[0] * x[0];
    return std::vector{late ? cube * 1.001 : cube};
  };
  const std::vector<Tensor> point = {f64({1}, {1.5})};
  ASSERT_TRUE(check_gradients(wrong, point));
  first_order = std::exchange(calls, 0);
  const Status status = check_gradients(wrong, point, {.second_order = true});
  ASSERT_FALSE(status);
  EXPECT_EQ(std::string(status.error().what()).find("second order: "), 0u) << status.error().what();
}

TEST(Derivative, OfAnInputUsedTwiceIsTheSum) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {}), y = x * x + x;
  const std::vector<Var> one = {builder.scalar(ElementType::f64, 1)};
  builder.output("dx", reverse(builder, 0, std::span(&y, 1), one, std::span(&x, 1)).at(0));
  expect_values(evaluate(graph, std::vector{f64({}, {3})}).outputs[0], {7});
}

TEST(Derivative, StopsAtWhatItIsTakenBy) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {}), h = exp(x), y = h * h;
  const std::vector<Var> one = {builder.scalar(ElementType::f64, 1)};
  const std::vector<Var> by_h = reverse(builder, 0, std::span(&y, 1), one, std::span(&h, 1));
  builder.output("dh", by_h.at(0));
  expect_values(evaluate(graph, std::vector{f64({}, {0})}).outputs[0], {2});
}

TEST(Derivative, OfWhatDoesNotDependIsInvalid) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {}), z = builder.input("z", ElementType::f64, {}),
            y = exp(x);
  const std::vector<Var> one = {builder.scalar(ElementType::f64, 1)};
  EXPECT_FALSE(reverse(builder, 0, std::span(&y, 1), one, std::span(&z, 1)).at(0).valid());
  EXPECT_FALSE(forward(builder, 0, std::span(&z, 1), one, std::span(&y, 1)).at(0).valid());
}

}  // namespace superstep::op::test
