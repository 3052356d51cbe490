#include "superstep/op/window/pooling.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

Tensor ramp(Shape shape) {
  Tensor tensor(ElementType::f64, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, static_cast<double>(i + 1));
  return tensor;
}

}  // namespace

TEST(MaxPool, ByHand) {
  const auto outputs = results(
      [](Builder&, std::span<const Var> x) {
        const MaxPooled pooled = max_pool(x[0], {.kernel_shape = {2, 2}, .strides = {2, 2}});
        return std::vector{pooled.values, pooled.indices};
      },
      {f64({1, 2, 2, 4}, {1, 9, 2, 3, 4, 5, 8, 8, -1, -2, 0, 0, -3, -4, 0, 0})});
  expect_values(outputs[0], {9, 8, -1, 0});
  expect_values(outputs[1], {1, 6, 8, 10});  // the first of equals, counted through the whole tensor
}

TEST(MaxPool, PaddingNeverWins) {
  expect_values(result(OF(max_pool(x[0], {.kernel_shape = {3}, .pads = {1, 1}}).values),
                       {f64({1, 1, 3}, {-5, -7, -6})}),
                {-5, -5, -6});
  const Tensor bytes = i64({1, 1, 3}, {3, 1, 2}).converted(ElementType::u8);
  expect_values(result(OF(max_pool(x[0], {.kernel_shape = {2}}).values), {bytes}), {3, 2});
}

TEST(MaxPool, ColumnsFirst) {
  const Function pool = [](Builder& b, std::span<const Var> x) {
    const Attributes attributes{{"kernel_shape", std::vector<std::int64_t>{2, 2}},
                                {"strides", std::vector<std::int64_t>{2, 2}},
                                {"storage_order", std::int64_t{1}}};
    return b.node("MaxPool", x, attributes, 2);
  };
  // The example of the ONNX specification: maxpool_with_argmax_2d_precomputed_strides.
  const auto outputs = results(pool, {ramp({1, 1, 5, 5})});
  expect_values(outputs[0], {7, 9, 17, 19});
  expect_values(outputs[1], {6, 16, 8, 18});
}

TEST(AveragePool, CountsWhatItIsTold) {
  const PoolAttributes padded = {.kernel_shape = {3}, .strides = {2}, .pads = {1, 1}};
  PoolAttributes counting = padded;
  counting.count_include_pad = true;
  const Tensor x0 = f64({1, 1, 3}, {3, 6, 9});
  expect_values(result(OF(average_pool(x[0], padded)), {x0}), {4.5, 7.5});
  expect_values(result(OF(average_pool(x[0], counting)), {x0}), {3, 5});
}

TEST(AveragePool, RoundedUpWindowsCountOnlyWhatExists) {
  PoolAttributes attributes = {.kernel_shape = {2}, .strides = {2}, .ceil_mode = true};
  expect_values(result(OF(average_pool(x[0], attributes)), {f64({1, 1, 3}, {1, 3, 5})}), {2, 5});
  attributes.count_include_pad = true;  // what lies past the padding is not padding
  expect_values(result(OF(average_pool(x[0], attributes)), {f64({1, 1, 3}, {1, 3, 5})}), {2, 5});
  // A window that would start in the padding at the end is left out.
  attributes = {.kernel_shape = {1}, .strides = {2}, .pads = {0, 0}, .ceil_mode = true};
  EXPECT_EQ(result(OF(average_pool(x[0], attributes)), {ramp({1, 1, 4})}).shape(), (Shape{1, 1, 2}));
}

TEST(LpPool, ByHand) {
  expect_values(result(OF(lp_pool(x[0], {.kernel_shape = {2}})), {f64({1, 1, 3}, {3, -4, 0})}), {5, 4});
  expect_values(result(OF(lp_pool(x[0], {.kernel_shape = {2}}, 1)), {f64({1, 1, 3}, {3, -4, 0})}), {7, 4});
}

TEST(GlobalPool, ByHand) {
  expect_values(result(OF(global_average_pool(x[0])), {ramp({1, 2, 2, 2})}), {2.5, 6.5});
  const Tensor top = result(OF(global_max_pool(x[0])), {ramp({1, 2, 2, 2})});
  EXPECT_EQ(top.shape(), (Shape{1, 2, 1, 1}));
  expect_values(top, {4, 8});
}

TEST(Pooling, Refusals) {
  expect_refusal(OF(average_pool(x[0], {.kernel_shape = {2}})), {ramp({1, 1, 3, 3})},
                 "AveragePool: the kernel has 1 spatial axes, the input 2");
  expect_refusal(OF(average_pool(x[0], {.kernel_shape = {2}})), {ramp({3, 3})},
                 "AveragePool: input X is of rank 2, expected 3 to 5");
  expect_refusal(OF(b.node1("MaxPool", {x[0]})), {ramp({1, 1, 3})},
                 "MaxPool: attribute 'kernel_shape' is missing");
  expect_refusal(OF(max_pool_gradient(x[0], x[1], {1, 1, 4})), {ramp({1, 1, 2}), i64({1, 1, 3}, {0, 1, 2})},
                 "superstep.MaxPoolGradient: input Indices is i64[1,1,3], expected shape [1,1,2]");
  expect_refusal(OF(max_pool_gradient(x[0], x[1], {1, 1, 4})), {ramp({1, 1, 2}), i64({1, 1, 2}, {0, 4})},
                 "input Indices holds 4, which lies outside the result");
}

}  // namespace superstep::op::test
