#include "superstep/op/product/determinant.h"
#include "superstep/op/product/quantization.h"
#include "superstep/op/rows/group_normalization.h"
#include "superstep/op/window/rearrange.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

Tensor bytes(Shape shape, std::vector<std::int64_t> values, ElementType type = ElementType::u8) {
  return i64(std::move(shape), std::move(values)).converted(type);
}

Function apply(const char* op, Attributes attributes = {}) {
  return [=](Builder& builder, std::span<const Var> x) { return builder.node(op, x, attributes); };
}

}  // namespace

std::vector<Case> picture_cases() {
  const Tensor image = random_tensor({2, 4, 3, 2}, 190), channels = random_tensor({4}, 191),
               more = random_tensor({4}, 192);
  return {
      {"GroupNormalization",
       "two groups",
       OF(group_normalization(x[0], x[1], x[2], 2)),
       {image, channels, more}},
      {"GroupNormalization",
       "a scale a group",
       OF(group_normalization(x[0], x[1], x[2], 2)),
       {image, random_tensor({2}, 193), random_tensor({2}, 194)}},
      {"RMSNormalization",
       "last axis",
       OF(rms_normalization(x[0], x[1])),
       {random_tensor({3, 4}, 195), channels}},
      {"RMSNormalization",
       "two axes",
       OF(rms_normalization(x[0], x[1], 1, 1e-3)),
       {random_tensor({2, 3, 4}, 196), random_tensor({3, 4}, 197)}},
      {"MeanVarianceNormalization", "default axes", OF(mean_variance_normalization(x[0])), {image}},
      {"MeanVarianceNormalization", "one axis", OF(mean_variance_normalization(x[0], {1})), {image}},
      {"LRN", "three channels", OF(local_response_normalization(x[0], 3, 0.2, 0.6, 1.5)), {image}},
      {"LRN", "even size", OF(local_response_normalization(x[0], 4, 0.2)), {image}},
      {"LpNormalization", "2-norm", OF(lp_normalization(x[0], 1)), {image}},
      {"LpNormalization", "1-norm", OF(lp_normalization(x[0], -1, 1)), {image}},
      {"DepthToSpace", "DCR", OF(depth_to_space(x[0], 2)), {random_tensor({1, 8, 2, 3}, 198)}},
      {"DepthToSpace", "CRD", OF(depth_to_space(x[0], 2, true)), {random_tensor({1, 8, 2, 3}, 199)}},
      {"SpaceToDepth", "blocks of two", OF(space_to_depth(x[0], 2)), {random_tensor({1, 2, 4, 6}, 200)}},
      {"SpaceToDepth", "CRD", OF(space_to_depth(x[0], 2, true)), {random_tensor({1, 2, 4, 6}, 206)}},
      {"Det", "a stack", OF(determinant(x[0])), {random_tensor({2, 3, 3}, 201)}},
      {"Det", "one number", OF(determinant(x[0])), {random_tensor({1, 1}, 202)}},
  };
}

std::vector<Case> quantization_cases() {
  const Tensor x3 = random_tensor({2, 3}, 203, 2), scales = f64({3}, {0.1, 0.5, 0.25}), one = f64({}, {0.2});
  const Tensor a = bytes({2, 3}, {200, 3, 7, 9, 12, 250}),
               w = bytes({3, 2}, {1, -2, 3, -4, 5, 6}, ElementType::i8);
  const Tensor zero = bytes({}, {7}), zeros = bytes({3}, {1, 2, 128}),
               i8_zero = bytes({}, {-3}, ElementType::i8);
  const Tensor picture = bytes({1, 2, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  const Tensor filter = bytes({2, 2, 2, 2}, {1, 2, 3, 4, 4, 3, 2, 1, 1, 0, 1, 0, 9, 9, 9, 9});
  return {
      {"QuantizeLinear", "one scale", apply("QuantizeLinear"), {x3, one}, Smooth::no},
      {"QuantizeLinear", "a scale a column", apply("QuantizeLinear"), {x3, scales, zeros}, Smooth::no, false},
      {"QuantizeLinear",
       "blocks",
       apply("QuantizeLinear", {{"axis", std::int64_t{1}}, {"block_size", std::int64_t{2}}}),
       {x3, uniform_tensor({2, 2}, 204, 0.1, 0.3)},
       Smooth::no,
       false},
      {"DequantizeLinear", "one scale", apply("DequantizeLinear"), {a, one, zero}},
      {"DequantizeLinear", "a scale a column", apply("DequantizeLinear"), {a, scales, zeros}},
      {"DequantizeLinear",
       "blocks",
       apply("DequantizeLinear", {{"block_size", std::int64_t{2}}}),
       {a, random_tensor({2, 2}, 205), bytes({2, 2}, {1, 2, 3, 4})}},
      // Of itself it is the identity, and so is its slope.
      {"superstep.StraightThrough",
       "of itself",
       OF(straight_through(x[0], x[0], x[1])),
       {x3, booleans({2, 3}, {1, 1, 1, 1, 1, 1})}},
      {"DynamicQuantizeLinear",
       "normal numbers",
       [](Builder& builder, std::span<const Var> x) {
         return builder.node("DynamicQuantizeLinear", x, {}, 3);
       },
       {x3},
       Smooth::no,
       false},
      {"MatMulInteger", "zero points", apply("MatMulInteger"), {a, w, zero, i8_zero}, Smooth::no},
      {"ConvInteger", "zero point", apply("ConvInteger"), {picture, filter, zero}, Smooth::no},
      {"QLinearMatMul",
       "scalars",
       apply("QLinearMatMul"),
       {a, one, zero, w, one, i8_zero, f64({}, {3}), zero},
       Smooth::no,
       false},
      {"QLinearConv",
       "bias",
       apply("QLinearConv"),
       {picture, one, zero, filter, one, bytes({}, {1}), f64({}, {0.5}), zero,
        i64({2}, {5, -9}).converted(ElementType::i32)},
       Smooth::no,
       false},
  };
}

}  // namespace superstep::op::test
