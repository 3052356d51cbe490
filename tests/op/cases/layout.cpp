#include <limits>

#include "superstep/op/elementwise/random.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();

std::vector<Var> with_axes_left_out(Builder& b, std::span<const Var> x) {
  return {b.node1("Squeeze", {x[0]})};
}

}  // namespace

std::vector<Case> layout_cases() {
  const Tensor a = random_tensor({2, 3, 4}, 71), b2 = random_tensor({2, 1, 4}, 72),
               c = random_tensor({6, 5}, 73);
  const std::vector<std::int64_t> pads = {1, 0, 2, 3}, negative = {-1, 2, 1, -2};
  std::vector<Case> cases = {
      {"Reshape", "three axes to two", OF(reshape(x[0], {6, 4})), {a}},
      {"Reshape", "kept and inferred extents", OF(b.node1("Reshape", {x[0], b.integers({0, -1})})), {a}},
      {"Reshape", "to a scalar", OF(reshape(x[0], Shape{})), {random_tensor({1, 1}, 74)}},
      {"Flatten", "default", OF(flatten(x[0])), {a}},
      {"Flatten", "all", OF(flatten(x[0], 0)), {a}},
      {"Flatten", "from the end", OF(flatten(x[0], -1)), {a}},
      {"Squeeze", "one axis", OF(squeeze(x[0], {1})), {b2}},
      {"Squeeze", "all", with_axes_left_out, {b2}},
      {"Unsqueeze", "two axes", OF(unsqueeze(x[0], {0, -1})), {a}},
      {"Expand", "in front and inside", OF(expand(x[0], {3, 2, 5, 4})), {b2}},
      {"Expand", "narrower target", OF(b.node1("Expand", {x[0], b.integers({3, 1})})), {b2}},
      {"Transpose", "reversed", OF(transpose(x[0])), {a}},
      {"Transpose", "cyclic", OF(transpose(x[0], {1, 2, 0})), {a}},
      {"Concat", "middle axis", OF(concat(x, 1)), {a, b2, a}},
      {"Concat", "same input twice", OF(concat(std::vector{x[0], x[0]}, -1)), {a}},
      {"Split", "lengths", [](Builder&, std::span<const Var> x) { return split(x[0], 1, {1, 0, 2}); }, {a}},
      {"Split", "equal parts", [](Builder& builder, std::span<const Var> x) { return builder.node("Split", x, {{"axis", std::int64_t{2}}}, 2); }, {a}},
      {"Split", "uneven parts", [](Builder& builder, std::span<const Var> x) {
         return builder.node("Split", x, {{"axis", std::int64_t{2}}, {"num_outputs", std::int64_t{3}}}, 3);
       }, {a}},
      {"Tile", "all axes", OF(tile(x[0], {2, 1, 3})), {a}},
      {"Slice", "steps of one", OF(slice(x[0], {1, 0}, {4, 3})), {c}},
      {"Slice", "from the end", OF(slice(x[0], {-3}, {-1}, {1})), {c}},
      {"Slice", "steps", OF(slice(x[0], {0, 1}, {far, far}, {0, 1}, {4, 2})), {c}},
      {"Slice", "backwards", OF(slice(x[0], {-1, 3}, {-far, 0}, {0, 1}, {-2, -1})), {c}},
      {"Slice", "nothing", OF(slice(x[0], {3}, {3}, {0})), {c}, Smooth::zero},
      {"Pad", "constant", OF(pad(x[0], pads, 1.5)), {c}},
      {"Pad", "negative", OF(pad(x[0], negative)), {c}},
      {"Pad", "value as an input", OF(b.node1("Pad", {x[0], b.integers(pads), x[1]})), {c, f64({}, {0.7})}},
      {"Pad", "axes", OF(b.node1("Pad", {x[0], b.integers({1, 2}), Var(), b.integers({-1})})), {c}},
      {"Pad", "edge", OF(pad(x[0], pads, 0, "edge")), {c}},
      {"Pad", "reflect", OF(pad(x[0], pads, 0, "reflect")), {c}},
      {"Pad", "wrap", OF(pad(x[0], {3, 7, 9, 1}, 0, "wrap")), {c}},
      {"Pad", "reflect further than the extent", OF(pad(x[0], {4, 5}, 0, "reflect")), {random_tensor({3}, 75)}},
      {"Pad", "edge with a cut", OF(pad(x[0], {-1, 2, 1, -2}, 0, "edge")), {c}},
      {"Shape", "all", OF(shape_of(x[0])), {a}, Smooth::no},
      {"Shape", "some", OF(b.node1("Shape", {x[0]}, {{"start", std::int64_t{-2}}, {"end", std::int64_t{-1}}})), {a}, Smooth::no},
      {"Size", "all", OF(element_count(x[0])), {a}, Smooth::no},
      {"ConstantOfShape", "integers", OF(constant_of_shape(b, ElementType::i32, {2, 3}, 7)), {a}, Smooth::no},
      {"Constant", "a list", OF(b.node1("Constant", {}, {{"value_ints", std::vector<std::int64_t>{3, 4}}})), {a}, Smooth::no},
      {"Range", "integers", OF(range(x[0], x[1], x[2])), {i64({}, {10}), i64({}, {3}), i64({}, {-2})}, Smooth::no},
      {"EyeLike", "off the diagonal", OF(b.node1("EyeLike", {x[0]}, {{"k", std::int64_t{-1}}})), {c}, Smooth::zero},
      {"superstep.RandomMask", "f32", OF(random_mask(x[0], ElementType::f32, {3, 7}, {5, 1, 0.75})), {i64({}, {3})}, Smooth::no,
       false},
      {"superstep.RandomNormal", "f32", OF(random_normal(x[0], ElementType::f32, {3, 7}, 5, 1)), {i64({}, {3})}, Smooth::no,
       false},
      {"Dropout", "inference", OF(b.node1("Dropout", {x[0]})), {a}},
      {"Dropout", "training", [](Builder& builder, std::span<const Var> x) {
         const Var inputs[] = {x[0], builder.scalar(ElementType::f32, 0.5), builder.constant(Tensor::scalar(true))};
         return builder.node("Dropout", inputs, {}, 2);
       }, {a}},
  };
  return cases;
}

}  // namespace superstep::op::test
