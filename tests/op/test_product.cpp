#include <cmath>

#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

using Extents = std::vector<std::int64_t>;

Tensor counting(Shape shape) {
  Tensor tensor(ElementType::f64, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}
Tensor ones(Shape shape) { return Tensor::full(ElementType::f64, std::move(shape), 1); }

// The definition, term by term: what the loop over rows must give.
double conv_term(const Tensor& x, const Tensor& w, std::int64_t n, std::int64_t m, std::int64_t oh,
                 std::int64_t ow, std::int64_t group, const Extents& stride, const Extents& dilation,
                 const Extents& pad, double total = 0) {
  const Shape &xs = x.shape(), &ws = w.shape();
  for (std::int64_t c = 0; c < ws[1]; ++c)
    for (std::int64_t kh = 0; kh < ws[2]; ++kh)
      for (std::int64_t kw = 0; kw < ws[3]; ++kw) {
        const std::int64_t ih = oh * stride[0] - pad[0] + kh * dilation[0];
        const std::int64_t iw = ow * stride[1] - pad[1] + kw * dilation[1];
        if (ih < 0 || ih >= xs[2] || iw < 0 || iw >= xs[3]) continue;
        const std::int64_t channel = m / (ws[0] / group) * ws[1] + c;
        total += x.at(((n * xs[1] + channel) * xs[2] + ih) * xs[3] + iw) *
                 w.at(((m * ws[1] + c) * ws[2] + kh) * ws[3] + kw);
      }
  return total;
}

}  // namespace

TEST(MatMul, ByHand) {
  const Tensor a = f64({2, 2}, {1, 2, 3, 4}), v = f64({2}, {10, 1});
  expect_values(result(OF(matmul(x[0], x[0])), {a}), {7, 10, 15, 22});
  expect_values(result(OF(matmul(x[0], x[1])), {a, v}), {12, 34});
  expect_values(result(OF(matmul(x[1], x[0])), {a, v}), {13, 24});
  const Tensor dot = result(OF(matmul(x[0], x[0])), {v});
  EXPECT_EQ(dot.shape(), Shape{});
  expect_values(dot, {101});
  EXPECT_EQ(result(OF(matmul(x[0], x[1])), {ones({5, 1, 2, 3}), ones({4, 3, 6})}).shape(),
            (Shape{5, 4, 2, 6}));
}

TEST(MatMul, Refusals) {
  expect_refusal(OF(matmul(x[0], x[1])), {ones({2, 3}), ones({4, 5})},
                 "MatMul: input A [2,3] has 3 columns, input B [4,5] has 4 rows");
  expect_refusal(OF(matmul(x[0], x[1])), {ones({}), ones({4})}, "must have one axis or more");
  expect_refusal(OF(matmul(x[0], x[1])), {ones({2, 2, 3}), ones({3, 3, 5})},
                 "leading axes of A and B of shapes [2] and [3] cannot be broadcast");
}

TEST(MatMul, CountsOperations) {
  const Built built = build(OF(matmul(x[0], x[1])), {ones({5, 2, 3}), ones({3, 7})});
  EXPECT_EQ(cost(built.graph).flops, 2.0 * 5 * 2 * 3 * 7);
  EXPECT_EQ(cost(built.graph).bytes, 8.0 * (30 + 21 + 70));
}

TEST(Gemm, ByHand) {
  const Tensor a = f64({2, 1}, {1, 2}), b2 = f64({2, 3}, {1, 2, 3, 4, 5, 6}), c = f64({1}, {10});
  expect_values(
      result(OF(gemm(x[0], x[1], x[2], {.transpose_a = true, .alpha = 2, .beta = 0.5})), {a, b2, c}),
      {23, 29, 35});
  expect_refusal(OF(gemm(x[0], x[1])), {a, b2},
                 "Gemm: inputs A [2,1] and B [2,3] have inner extents 1 and 2");
  expect_refusal(OF(gemm(x[0], x[1], x[2], {.transpose_a = true})), {a, b2, ones({2})},
                 "C and the product of shapes [2] and [1,3] cannot be broadcast");
  expect_refusal(OF(gemm(x[0], x[1], x[2], {.transpose_a = true})), {a, b2, ones({2, 3})},
                 "input C is [2,3], expected a shape that broadcasts to [1,3]");
  expect_refusal(OF(gemm(x[0], x[1])), {ones({2}), b2}, "Gemm: input A is f64[2], expected rank 2");
}

TEST(Conv, ByHand) {
  // A 3 x 3 box over a 5 x 5 ramp, padded.
  const Tensor y =
      result(OF(conv(x[0], x[1], {}, {.pads = {1, 1, 1, 1}})), {counting({1, 1, 5, 5}), ones({1, 1, 3, 3})});
  expect_values(y, {12,  21, 27, 33,  24,  33,  54,  63, 72,  51,  63,  99, 108,
                    117, 81, 93, 144, 153, 162, 111, 72, 111, 117, 123, 84});
}

TEST(Conv, IsItsDefinition) {
  const Extents stride = {2, 1}, dilation = {1, 2}, pad = {1, 2};
  const Tensor x0 = random_tensor({2, 4, 7, 6}, 1), w = random_tensor({6, 2, 3, 2}, 2),
               bias = random_tensor({6}, 3);
  const Tensor y =
      result(OF(conv(x[0], x[1], x[2],
                     {.strides = stride, .dilations = dilation, .pads = {1, 2, 0, 1}, .group = 2})),
             {x0, w, bias});
  ASSERT_EQ(y.shape(), (Shape{2, 6, 3, 7}));
  for (std::int64_t i = 0; i < y.element_count(); ++i) {
    const std::int64_t ow = i % 7, oh = i / 7 % 3, m = i / 21 % 6, n = i / 126;
    EXPECT_NEAR(y.at(i), bias.at(m) + conv_term(x0, w, n, m, oh, ow, 2, stride, dilation, pad), 1e-13);
  }
}

// However many results are made at a time, each has the bits of its own sum.
TEST(Conv, SumsInTheOrderOfItsDefinition) {
  struct Shapes {
    Shape x, w;
    std::int64_t group, stride, pad;
  };
  for (const auto& [x_shape, w_shape, group, stride, pad] :
       {Shapes{{2, 8, 7, 6}, {8, 4, 3, 2}, 2, 1, 1}, Shapes{{2, 6, 3, 2}, {16, 6, 2, 2}, 1, 1, 0},
        Shapes{{1, 3, 50, 60}, {5, 3, 3, 3}, 1, 1, 1}, Shapes{{1, 4, 9, 9}, {9, 4, 3, 3}, 1, 2, 2},
        Shapes{{1, 6, 8, 7}, {6, 1, 3, 3}, 6, 1, 1}}) {
    const Tensor x0 = random_tensor(x_shape, 1), w = random_tensor(w_shape, 2),
                 bias = random_tensor({w_shape[0]}, 3);
    const Tensor y =
        result(OF(conv(x[0], x[1], x[2],
                       {.strides = {stride, stride}, .pads = {pad, pad, pad, pad}, .group = group})),
               {x0, w, bias});
    const std::int64_t maps = y.shape()[1], height = y.shape()[2], width = y.shape()[3];
    for (std::int64_t i = 0; i < y.element_count(); ++i) {
      const std::int64_t m = i / width / height % maps;
      ASSERT_EQ(y.at(i), conv_term(x0, w, i / width / height / maps, m, i / width % height, i % width, group,
                                   {stride, stride}, {1, 1}, {pad, pad}, bias.at(m)))
          << to_string(w_shape) << " at " << i;
    }
  }
}

TEST(Conv, AnInfiniteWeightDoesNotMeetThePadding) {
  Tensor w = ones({4, 1, 1, 3}).clone();
  w.set(0, HUGE_VAL);
  const Tensor y = result(OF(conv(x[0], x[1], {}, {.pads = {0, 1, 0, 1}})), {ones({1, 1, 1, 2}), w});
  expect_values(y, {2, HUGE_VAL, 2, 2, 2, 2, 2, 2});
}

TEST(Conv, AutomaticPadding) {
  const Tensor x0 = counting({1, 1, 1, 4}), w = f64({1, 1, 1, 2}, {1, 10});
  expect_values(result(OF(conv(x[0], x[1], {}, {.auto_pad = "SAME_UPPER"})), {x0, w}), {10, 21, 32, 3});
  expect_values(result(OF(conv(x[0], x[1], {}, {.auto_pad = "SAME_LOWER"})), {x0, w}), {0, 10, 21, 32});
  expect_values(result(OF(conv(x[0], x[1], {}, {.auto_pad = "VALID"})), {x0, w}), {10, 21, 32});
}

TEST(Conv, CountsOperations) {
  const Built built =
      build(OF(conv(x[0], x[1], x[2], {.group = 2})), {ones({3, 4, 5, 5}), ones({6, 2, 3, 3}), ones({6})});
  EXPECT_EQ(cost(built.graph).flops, 2.0 * 3 * 6 * 3 * 3 * 2 * 9 + 3 * 6 * 9);
}

TEST(Conv, Refusals) {
  const auto refused = [](Shape x_shape, Shape w, ConvAttributes attributes, const char* text) {
    expect_refusal(OF(conv(x[0], x[1], {}, attributes)), {ones(x_shape), ones(w)}, text);
  };
  refused({1, 3, 5, 5}, {2, 2, 3, 3}, {},
          "Conv: input W [2,2,3,3] with group 1 takes 2 channels, input X [1,3,5,5] has 3");
  refused({1, 4, 5, 5}, {3, 2, 3, 3}, {.group = 2},
          "input W [3,2,3,3] has 3 maps, which group 2 does not divide");
  refused({1, 3, 5, 5}, {2, 3, 3}, {}, "input W is of rank 3, expected 4 like X");
  refused({3, 5}, {3, 5}, {}, "input X is of rank 2, expected 3 to 5");
  refused({1, 1, 2, 5}, {1, 1, 3, 3}, {}, "a kernel that reaches over 3 does not fit the extent 2");
  refused({1, 1, 5, 5}, {1, 1, 3, 3}, {.strides = {1}}, "attribute 'strides' has 1 elements, expected 2");
  refused({1, 1, 5, 5}, {1, 1, 3, 3}, {.strides = {0, 1}}, "attribute 'strides' holds 0, expected 1 or more");
  refused({1, 1, 5, 5}, {1, 1, 3, 3}, {.group = 0}, "attribute 'group' must be positive");
  refused({1, 1, 5, 5}, {1, 1, 3, 3}, {.auto_pad = "SAME"},
          "attribute 'auto_pad' is 'SAME', expected NOTSET");
  refused({1, 1, 2, 2, 2, 2}, {1, 1, 1, 1, 1, 1}, {}, "4 spatial axes; 1 to 3 are supported");
  expect_refusal(OF(conv(x[0], x[1], x[2])), {ones({1, 1, 5}), ones({2, 1, 3}), ones({3})},
                 "Conv: input B is f64[3], expected shape [2]");
  expect_refusal(OF(b.node1("Conv", {x[0], x[1]}, {{"kernel_shape", Extents{5}}})),
                 {ones({1, 1, 5}), ones({2, 1, 3})},
                 "attribute 'kernel_shape' does not agree with input W [2,1,3]");
}

TEST(ConvTranspose, ByHand) {
  // The example of the ONNX specification: a 3 x 3 box spread over a ramp with stride 2.
  const Tensor y = result(OF(conv_transpose(x[0], x[1], {}, {{.strides = {2, 2}, .auto_pad = "SAME_UPPER"}})),
                          {counting({1, 1, 3, 3}), ones({1, 1, 3, 3})});
  expect_values(y, {0, 0, 1, 1, 3, 2, 0, 0, 1,  1,  3,  2,  3, 3, 8,  5, 12, 7,
                    3, 3, 7, 4, 9, 5, 9, 9, 20, 11, 24, 13, 6, 6, 13, 7, 15, 8});
}

TEST(ConvTranspose, OutputShapeAndPadding) {
  const auto shape = [](ConvTransposeAttributes attributes) {
    return result(OF(conv_transpose(x[0], x[1], {}, attributes)), {ones({1, 1, 3, 3}), ones({1, 2, 3, 3})})
        .shape();
  };
  EXPECT_EQ(shape({}), (Shape{1, 2, 5, 5}));
  EXPECT_EQ(shape({{.strides = {3, 2}}, {}, {10, 8}}), (Shape{1, 2, 10, 8}));
  EXPECT_EQ(shape({{.strides = {3, 2}}, {1, 1}}), (Shape{1, 2, 10, 8}));
  EXPECT_EQ(shape({{.strides = {3, 2}, .pads = {1, 2, 1, 2}}}), (Shape{1, 2, 7, 3}));
  EXPECT_EQ(shape({{.dilations = {2, 2}}}), (Shape{1, 2, 7, 7}));
  expect_refusal(OF(conv_transpose(x[0], x[1])), {ones({1, 3, 3}), ones({2, 1, 3})},
                 "ConvTranspose: input W [2,1,3] takes 2 channels, input X [1,3,3] has 3");
  expect_refusal(OF(conv_transpose(x[0], x[1], {}, {{.pads = {3, 3}}})), {ones({1, 1, 1}), ones({1, 1, 2})},
                 "padding 3 and 3 cuts more than the output's 2");
}

// <conv(x, w), y> = <x, conv_transpose(y, w)>: the definition of a transpose, for every remainder of a
// stride.
TEST(ConvTranspose, IsTheTransposeOfConv) {
  for (std::int64_t extent = 5; extent < 11; ++extent) {
    const Attributes attributes{{"strides", Extents{3}}, {"pads", Extents{1, 2}}, {"dilations", Extents{2}}};
    const Tensor x0 = random_tensor({2, 3, extent}, 4), w = random_tensor({4, 3, 2}, 5);
    const Tensor y = result(OF(b.node1("Conv", {x[0], x[1]}, attributes)), {x0, w});
    const Tensor cotangent = random_tensor(y.shape(), 6);
    const Tensor dx = result(OF(conv_input_gradient(x[0], x[1], x0.shape(), attributes)), {cotangent, w});
    const Tensor dw = result(OF(conv_weight_gradient(x[0], x[1], {2}, attributes)), {x0, cotangent});
    double left = 0, right = 0, by_weights = 0;
    for (std::int64_t i = 0; i < y.element_count(); ++i) left += y.at(i) * cotangent.at(i);
    for (std::int64_t i = 0; i < dx.element_count(); ++i) right += x0.at(i) * dx.at(i);
    for (std::int64_t i = 0; i < dw.element_count(); ++i) by_weights += w.at(i) * dw.at(i);
    EXPECT_NEAR(left, right, 1e-12) << extent;
    EXPECT_NEAR(left, by_weights, 1e-12) << extent;
  }
}

TEST(ConvWeightGradient, Refusals) {
  const Attributes none;
  expect_refusal(OF(conv_weight_gradient(x[0], x[1], {3}, none)), {ones({2, 1, 5}), ones({2, 4, 4})},
                 "superstep.ConvWeightGradient: input dY is f64[2,4,4], expected shape [2,4,3]");
  expect_refusal(OF(b.node1("superstep.ConvWeightGradient", {x[0], x[1]})),
                 {ones({2, 1, 5}), ones({2, 4, 4})}, "attribute 'kernel_shape' is missing");
}

}  // namespace superstep::op::test
