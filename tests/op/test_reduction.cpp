#include <limits>

#include "superstep/op/rows/reduction.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const Tensor table = f64({2, 3}, {1, -2, 3, 4, 5, -6});

}  // namespace

TEST(Reduction, ByHand) {
  expect_values(result(OF(reduce_sum(x[0], {0})), {table}), {5, 3, -3});
  expect_values(result(OF(reduce_mean(x[0], {1})), {table}), {2.0 / 3, 1});
  expect_values(result(OF(reduce_prod(x[0], {1})), {table}), {-6, -120});
  expect_values(result(OF(reduce_max(x[0])), {table}), {5});
  expect_values(result(OF(reduce_min(x[0], {-1}, true)), {table}), {-2, -6});
  expect_values(result(OF(reduce_l1(x[0], {0})), {table}), {5, 7, 9});
  expect_values(result(OF(reduce_l2(x[0], {1})), {f64({1, 2}, {3, 4})}), {5});
  expect_values(result(OF(reduce_sum_square(x[0], {0})), {table}), {17, 29, 45});
  expect_values(result(OF(reduce_log_sum(x[0], {1})), {f64({1, 2}, {1, 2})}), {std::log(3)});
  expect_values(
      result(OF(reduce_log_sum_exp(x[0], {1})), {f64({3, 2}, {1000, 1000, -1000, -1000, -inf, -inf})}),
      {1000 + std::log(2), -1000 + std::log(2), -inf});
}

TEST(Reduction, ShapesAndAxes) {
  EXPECT_EQ(result(OF(reduce_sum(x[0], {-1}, true)), {table}).shape(), (Shape{2, 1}));
  EXPECT_EQ(result(OF(reduce_sum(x[0])), {table}).shape(), Shape{});
  const Attributes keep_all{{"noop_with_empty_axes", std::int64_t{1}}};
  EXPECT_EQ(result(OF(b.node1("ReduceSum", {x[0]}, keep_all)), {table}).shape(), (Shape{2, 3}));
  expect_refusal(OF(reduce_sum(x[0], {2})), {table}, "ReduceSum: axes 2 lies outside [-2, 1]");
  expect_refusal(OF(reduce_sum(x[0], {0, -2})), {table}, "ReduceSum: axes name the same axis twice");
  expect_refusal(OF(b.node1("ReduceSum", {x[0], x[1]})), {table, f64({1}, {0})},
                 "input axes must be integers");
}

TEST(Reduction, AxesMustBeKnown) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f32, {2, 3}),
            axes = builder.input("axes", ElementType::i64, {1});
  try {
    builder.node1("ReduceSum", {x, axes});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("input axes must be known when the graph is compiled"),
              std::string::npos);
  }
}

TEST(Reduction, NothingToReduce) {
  const Tensor none(ElementType::f64, {0, 2});
  expect_values(result(OF(reduce_sum(x[0], {0})), {none}), {0, 0});
  expect_values(result(OF(reduce_prod(x[0], {0})), {none}), {1, 1});
  expect_values(result(OF(reduce_max(x[0], {0})), {none}), {-inf, -inf});
}

TEST(Arg, FirstAndLastOfEquals) {
  const Tensor ties = f64({2, 3}, {3, 1, 3, 0, 0, -1});
  expect_values(result(OF(argmax(x[0], 1)), {ties}), {0, 0});
  expect_values(result(OF(argmin(x[0], 0)), {ties}), {1, 1, 1});
  const Attributes last{
      {"axis", std::int64_t{1}}, {"select_last_index", std::int64_t{1}}, {"keepdims", std::int64_t{0}}};
  expect_values(result(OF(b.node1("ArgMax", {x[0]}, last)), {ties}), {2, 1});
  EXPECT_EQ(result(OF(argmax(x[0], 1, true)), {ties}).shape(), (Shape{2, 1}));
  expect_refusal(OF(argmax(x[0], 0)), {Tensor(ElementType::f64, {0, 2})}, "ArgMax: axis 0 is empty");
  expect_refusal(OF(argmax(x[0], 5)), {ties}, "ArgMax: attribute 'axis' 5 lies outside [-2, 1]");
}

}  // namespace superstep::op::test
