#include <limits>

#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

const Tensor table = f64({2, 3}, {1, 2, 3, 4, 5, 6});
constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();

Shape reshaped(const Shape& from, std::vector<std::int64_t> to, bool allow_zero = false) {
  const Attributes attributes{{"allowzero", std::int64_t{allow_zero}}};
  return result(OF(b.node1("Reshape", {x[0], b.integers(to)}, attributes)), {Tensor(ElementType::f64, from)})
      .shape();
}

}  // namespace

TEST(Reshape, KeptAndInferredExtents) {
  EXPECT_EQ(reshaped({2, 3, 4}, {0, -1}), (Shape{2, 12}));
  EXPECT_EQ(reshaped({2, 3, 4}, {-1}), (Shape{24}));
  EXPECT_EQ(reshaped({0, 3}, {3, 0}, true), (Shape{3, 0}));
  EXPECT_EQ(reshaped({1}, {}), Shape{});
  expect_refusal(OF(reshape(x[0], {4})), {table}, "Reshape: cannot reshape [2,3] to [4]");
  expect_refusal(OF(b.node1("Reshape", {x[0], b.integers({-1, -1})})), {table},
                 "cannot reshape [2,3] to [-1,-1]");
  expect_refusal(OF(b.node1("Reshape", {x[0], b.integers({4, -1})})), {table},
                 "cannot reshape [2,3] to [4,-1]");
  expect_refusal(OF(b.node1("Reshape", {x[0], b.integers({6, 1, 0})})), {table},
                 "cannot reshape [2,3] to [6,1,0]");
  expect_refusal(OF(b.node1("Reshape", {x[0], b.integers({1 << 30, 1 << 30, 1 << 30})})), {table},
                 "cannot reshape");
}

TEST(View, Shapes) {
  EXPECT_EQ(result(OF(flatten(x[0], 2)), {table}).shape(), (Shape{6, 1}));
  EXPECT_EQ(result(OF(flatten(x[0], 0)), {table}).shape(), (Shape{1, 6}));
  EXPECT_EQ(result(OF(unsqueeze(x[0], {-1, 0})), {table}).shape(), (Shape{1, 2, 3, 1}));
  expect_refusal(OF(squeeze(x[0], {1})), {table}, "Squeeze: axis 1 of [2,3] has extent 3, expected 1");
  expect_refusal(OF(unsqueeze(x[0], {0, 0})), {table}, "Unsqueeze: axes name the same axis twice");
  expect_refusal(OF(flatten(x[0], 3)), {table}, "Flatten: axis 3 lies outside [-2, 1]");
}

TEST(Expand, RepeatsAndRefuses) {
  expect_values(result(OF(expand(x[0], {2, 2})), {f64({2, 1}, {1, 2})}), {1, 1, 2, 2});
  expect_refusal(OF(expand(x[0], {2, 2})), {table}, "Expand: input and target of shapes [2,3] and [2,2]");
  expect_refusal(OF(b.node1("Expand", {x[0], b.integers({-2, 3})})), {table},
                 "Expand: a shape has a negative extent");
}

TEST(Transpose, ByHand) {
  expect_values(result(OF(transpose(x[0])), {table}), {1, 4, 2, 5, 3, 6});
  const Tensor swapped = result(OF(swap_axes(x[0], 0, -1)), {Tensor(ElementType::u8, {2, 3, 4})});
  EXPECT_EQ(swapped.shape(), (Shape{4, 3, 2}));
  expect_refusal(OF(transpose(x[0], {0, 0})), {table},
                 "Transpose: attribute 'perm' name the same axis twice");
  expect_refusal(OF(transpose(x[0], {0})), {table},
                 "Transpose: attribute 'perm' names 1 axes, input data has 2");
}

TEST(Concat, ByHand) {
  expect_values(result(OF(concat(x, 1)), {table, f64({2, 1}, {7, 8})}), {1, 2, 3, 7, 4, 5, 6, 8});
  expect_refusal(OF(concat(x, 0)), {table, f64({2, 1}, {7, 8})},
                 "Concat: input inputs[1] is f64[2,1], which does not join f64[2,3] along axis 0");
  expect_refusal(OF(concat(x, 0)), {table, i64({1, 3}, {7, 8, 9})},
                 "Concat: input inputs[1] is i64[1,3], expected f64 like inputs[0]");
}

TEST(Split, ByHand) {
  const auto parts = results(
      [](Builder&, std::span<const Var> x) {
        return split(x[0], 1, {1, 2});
      },
      {table});
  expect_values(parts[0], {1, 4});
  expect_values(parts[1], {2, 3, 5, 6});
  expect_refusal(
      [](Builder&, std::span<const Var> x) {
        return split(x[0], 1, {1, 1});
      },
      {table}, "Split: lengths [1,1] do not add up to the extent 3 of axis 1");
}

TEST(Slice, FollowsPython) {
  const Tensor line = f64({6}, {0, 1, 2, 3, 4, 5});
  const auto cut = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return values(result(OF(slice(x[0], {start}, {end}, {0}, {step})), {line}));
  };
  EXPECT_EQ(cut(1, 4, 1), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(cut(-2, far, 1), (std::vector<double>{4, 5}));
  EXPECT_EQ(cut(0, 100, 4), (std::vector<double>{0, 4}));
  EXPECT_EQ(cut(-1, -far, -2), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(cut(100, 2, -1), (std::vector<double>{5, 4, 3}));
  EXPECT_EQ(cut(4, 2, 1), (std::vector<double>{}));
  EXPECT_EQ(cut(-100, 1, 1), (std::vector<double>{0}));
  EXPECT_EQ(cut(1, far, far), (std::vector<double>{1}));
  EXPECT_EQ(cut(4, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::min()),
            (std::vector<double>{4}));
  expect_refusal(OF(slice(x[0], {0}, {1}, {0}, {0})), {line}, "Slice: a step of 0 was given");
  expect_refusal(OF(slice(x[0], {0}, {1}, {1})), {line}, "Slice: input axes 1 lies outside [-1, 0]");
  expect_refusal(OF(slice(x[0], {0}, {1, 2}, {0})), {line},
                 "inputs starts, ends, axes and steps have 1, 2, 1 and 1 elements, expected the same");
}

TEST(Pad, Modes) {
  const Tensor line = f64({3}, {1, 2, 3});
  const auto padded = [&](const char* mode) {
    return values(result(OF(pad(x[0], {2, 3}, 9, mode)), {line}));
  };
  EXPECT_EQ(padded("constant"), (std::vector<double>{9, 9, 1, 2, 3, 9, 9, 9}));
  EXPECT_EQ(padded("edge"), (std::vector<double>{1, 1, 1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(padded("reflect"), (std::vector<double>{3, 2, 1, 2, 3, 2, 1, 2}));
  EXPECT_EQ(padded("wrap"), (std::vector<double>{2, 3, 1, 2, 3, 1, 2, 3}));
  expect_values(result(OF(pad(x[0], {-1, 1})), {line}), {2, 3, 0});
  expect_refusal(OF(pad(x[0], {1, 1}, 0, "mirror")), {line},
                 "Pad: attribute 'mode' is 'mirror', expected constant");
  expect_refusal(OF(pad(x[0], {1})), {line}, "Pad: input pads has 1 elements, expected 2");
  expect_refusal(OF(pad(x[0], {-2, -2})), {line}, "Pad: pads -2 and -2 cut more than axis 0 of [3] has");
}

TEST(Tile, ByHand) {
  expect_values(result(OF(tile(x[0], {2, 2})), {f64({1, 2}, {1, 2})}), {1, 2, 1, 2, 1, 2, 1, 2});
  expect_refusal(OF(tile(x[0], {2})), {table}, "Tile: input repeats has 1 elements, expected 2");
}

TEST(Creation, ByHand) {
  expect_values(result(OF(shape_of(x[0])), {table}), {2, 3});
  expect_values(result(OF(element_count(x[0])), {table}), {6});
  expect_values(result(OF(range(x[0], x[1], x[2])), {i64({}, {2}), i64({}, {9}), i64({}, {3})}), {2, 5, 8});
  expect_values(result(OF(range(x[0], x[1], x[2])), {i64({}, {2}), i64({}, {9}), i64({}, {-1})}), {});
  expect_refusal(OF(range(x[0], x[1], x[2])), {i64({}, {2}), i64({}, {9}), i64({}, {0})},
                 "Range: input delta is 0");
  expect_values(result(OF(b.node1("EyeLike", {x[0]}, {{"k", std::int64_t{1}}})), {table}),
                {0, 1, 0, 0, 0, 1});
  const Tensor sevens = result(OF(constant_of_shape(b, ElementType::i8, {2}, 7)), {});
  EXPECT_EQ(sevens.type(), ElementType::i8);
  expect_values(sevens, {7, 7});
  expect_refusal(OF(b.node1("Constant", {})), {}, "Constant: none of the attributes value, value_float");
}

}  // namespace superstep::op::test
