#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/integer.h"
#include "superstep/op/elementwise/trigonometry.h"
#include "superstep/op/product/einsum.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/window/resize.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

Function apply(const char* op, Attributes attributes = {}, int outputs = 1) {
  return [=](Builder& builder, std::span<const Var> x) { return builder.node(op, x, attributes, outputs); };
}

Case summed(const char* equation, std::vector<Shape> shapes) {
  Case result{"Einsum", equation, OF(einsum(equation, x)), {}};
  for (const Shape& shape : shapes) result.inputs.push_back(random_tensor(shape, 120 + result.inputs.size()));
  return result;
}

Case resized(const char* name, Shape from, Shape to, ResizeAttributes attributes) {
  return {"Resize", name, OF(resize(x[0], to, attributes)), {random_tensor(from, 130)}};
}

// Scales instead of sizes, on the last axes.
Case scaled(const char* name, Attributes attributes, std::vector<double> scales) {
  return {"Resize",
          name,
          [=](Builder& builder, std::span<const Var> x) {
            const Var factors = builder.constant(
                f64({static_cast<std::int64_t>(scales.size())}, scales).converted(ElementType::f32));
            return std::vector{builder.node1("Resize", {x[0], Var(), factors}, attributes)};
          },
          {random_tensor({1, 2, 4, 5}, 131)},
          Smooth::twice,
          false};
}

Tensor unsigned_numbers() { return i64({4}, {1, 2, 200, 255}).converted(ElementType::u8); }

}  // namespace

std::vector<Case> trigonometric_cases() {
  std::vector<Case> cases;
  for (const char* op : {"Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh"})
    cases.push_back({op, "normal numbers", apply(op), {random_tensor({3, 4}, 111)}});
  for (const char* op : {"Asin", "Acos", "Atanh", "Tan"})
    cases.push_back({op, "inside (-1, 1)", apply(op), {uniform_tensor({3, 4}, 112, -0.9, 0.9)}});
  cases.push_back({"Acosh", "above 1", apply("Acosh"), {uniform_tensor({3, 4}, 113, 1.2, 4)}});
  return cases;
}

std::vector<Case> integer_cases() {
  const Tensor a = i64({2, 3}, {-7, 7, 5, -5, 0, 9}), divisors = i64({3}, {3, -3, 2});
  const Tensor bytes = unsigned_numbers(), shifts = i64({4}, {1, 3, 0, 9}).converted(ElementType::u8);
  return {
      {"Mod", "integers", OF(mod(x[0], x[1])), {a, divisors}, Smooth::no},
      {"Mod", "integers as fmod", OF(mod(x[0], x[1], true)), {a, divisors}, Smooth::no},
      {"Mod",
       "floating",
       OF(mod(x[0], x[1], true)),
       {random_tensor({3, 4}, 114, 5), uniform_tensor({4}, 115, 0.7, 2)}},
      {"Mod",
       "floating, like the divisor",
       OF(mod(x[0], x[1])),
       {random_tensor({3, 4}, 114, 5), uniform_tensor({4}, 115, 0.7, 2)}},
      {"BitShift",
       "signed",
       OF(bit_shift(x[0], x[1], "RIGHT")),
       {i64({4}, {-9, 9, -1, 5}), i64({4}, {1, 2, 70, -1})},
       Smooth::no},
      {"BitShift", "left", OF(bit_shift(x[0], x[1], "LEFT")), {bytes, shifts}, Smooth::no},
      {"BitShift", "right", OF(bit_shift(x[0], x[1], "RIGHT")), {bytes, shifts}, Smooth::no},
      {"BitwiseAnd", "broadcast", OF(bitwise_and(x[0], x[1])), {a, divisors}, Smooth::no},
      {"BitwiseOr", "broadcast", OF(bitwise_or(x[0], x[1])), {a, divisors}, Smooth::no},
      {"BitwiseXor", "broadcast", OF(bitwise_xor(x[0], x[1])), {a, divisors}, Smooth::no},
      {"BitwiseNot", "bytes", OF(bitwise_not(x[0])), {bytes}, Smooth::no},
  };
}

std::vector<Case> selection_cases() {
  const Tensor a = random_tensor({3, 4, 5}, 116), m = random_tensor({5, 4}, 117);
  const Tensor labels = i64({2, 3}, {0, 2, -1, 1, 7, -9}), few = f64({2, 3}, {1, 0, 2, 1, 0, 3});
  const auto both = [](std::int64_t k, std::int64_t axis, bool largest) {
    return OF(top_k(x[0], k, axis, largest).values, top_k(x[0], k, axis, largest).indices);
  };
  return {
      {"CumSum", "first axis", OF(cumsum(x[0], 0)), {a}},
      {"CumSum", "exclusive", OF(cumsum(x[0], -1, true)), {a}},
      {"CumSum", "reversed", OF(cumsum(x[0], 1, false, true)), {a}},
      {"CumSum", "exclusive and reversed", OF(cumsum(x[0], 1, true, true)), {a}},
      {"Trilu", "upper", OF(trilu(x[0])), {a}},
      {"Trilu", "lower, shifted", OF(trilu(x[0], -1, false)), {m}},
      {"ReverseSequence", "time first", OF(reverse_sequence(x[0], x[1])), {a, i64({4}, {1, 3, 0, 2})}},
      {"ReverseSequence", "batch first", OF(reverse_sequence(x[0], x[1], 0, 1)), {a, i64({3}, {4, 1, 3})}},
      {"TopK", "largest", both(2, -1, true), {a}},
      {"TopK", "smallest of the first axis", both(2, 0, false), {a}},
      {"TopK", "all", OF(top_k(x[0], 4, 1).values), {a}},
      {"OneHot", "last axis", OF(one_hot(x[0], 4, x[1])), {labels, f64({2}, {-1, 3})}},
      {"OneHot", "first axis", OF(one_hot(x[0], 3, x[1], 0)), {labels, f64({2}, {0, 1})}},
      {"NonZero", "constant", OF(b.node1("NonZero", {b.constant(few)})), {}, Smooth::no},
      {"Compress",
       "an axis",
       OF(b.node1("Compress", {x[0], x[1]}, {{"axis", std::int64_t{1}}})),
       {a, booleans({3}, {0, 1, 1})}},
      {"Compress", "elements", OF(b.node1("Compress", {x[0], x[1]})), {a, booleans({5}, {0, 1, 1, 0, 1})}},
      {"Unique",
       "elements",
       [few](Builder& builder, std::span<const Var>) {
         const Var data = builder.constant(few);
         return builder.node("Unique", std::span(&data, 1), {}, 4);
       },
       {},
       Smooth::no},
      {"Unique",
       "columns in order",
       [few](Builder& builder, std::span<const Var>) {
         const Var data = builder.constant(few);
         return builder.node("Unique", std::span(&data, 1),
                             {{"axis", std::int64_t{1}}, {"sorted", std::int64_t{0}}}, 4);
       },
       {},
       Smooth::no},
      summed("ij,jk->ik", {{2, 3}, {3, 4}}),
      summed("bij,bjk->bik", {{2, 2, 3}, {2, 3, 4}}),
      summed("ij->ji", {{2, 3}}),
      summed("ij->i", {{2, 3}}),
      summed("ij,jk", {{2, 3}, {3, 4}}),
      summed("ii->i", {{3, 3}}),
      summed("ii", {{3, 3}}),
      summed("iij,j->i", {{3, 3, 2}, {2}}),
      summed("i,j->ij", {{3}, {2}}),
      summed("ij,k->i", {{2, 3}, {4}}),
      summed("...ij,...jk->...ik", {{2, 1, 2, 3}, {4, 3, 2}}),
      summed("...i,i...->...", {{2, 3}, {3, 2}}),
      summed("ab,bc,cd->ad", {{2, 3}, {3, 2}, {2, 4}}),
      summed("i , i", {{4}, {4}}),
      {"Einsum",
       "integers",
       OF(einsum("ij,j->i", x)),
       {i64({2, 2}, {1, 2, 3, 4}), i64({2}, {5, -6})},
       Smooth::no},
  };
}

// The transpose of a Resize, as its rule makes it.
Case resized_back(const char* name, Shape from, Shape to, const char* mode) {
  return {"superstep.ResizeGradient",
          name,
          [=](Builder& builder, std::span<const Var> x) {
            const Var inputs[] = {x[0], Var(), Var(), builder.integers(to.extents())};
            return builder.node("superstep.ResizeGradient", inputs,
                                {{"mode", std::string(mode)}, {"input_shape", from.extents()}});
          },
          {random_tensor(to, 131)}};
}

std::vector<Case> resize_cases() {
  const Tensor picture = random_tensor({1, 2, 3, 4}, 132);
  return {
      resized_back("nearest, twice as large", {1, 2, 3, 4}, {1, 2, 6, 8}, "nearest"),
      resized_back("linear, other sizes", {1, 2, 3, 5}, {1, 2, 6, 4}, "linear"),
      resized("nearest, twice as large", {1, 2, 3, 4}, {1, 2, 6, 8}, {}),
      resized("nearest, of one row", {1, 2, 1, 2}, {1, 2, 8, 1}, {}),
      resized("nearest, a third larger", {1, 2, 3, 4}, {1, 2, 4, 7}, {.nearest = "ceil"}),
      resized("nearest, smaller, asymmetric", {1, 2, 7, 8}, {1, 2, 3, 4},
              {.coordinates = "asymmetric", .nearest = "floor"}),
      resized("linear, half pixel", {1, 2, 3, 4}, {1, 2, 6, 7}, {.mode = "linear"}),
      resized("linear, align corners", {1, 2, 3, 4}, {1, 2, 5, 9},
              {.mode = "linear", .coordinates = "align_corners"}),
      resized("linear, smaller", {1, 2, 7, 8}, {1, 2, 3, 5},
              {.mode = "linear", .coordinates = "pytorch_half_pixel"}),
      resized("linear, smaller, antialias", {1, 2, 7, 8}, {1, 2, 3, 5},
              {.mode = "linear", .antialias = true}),
      resized("cubic", {1, 1, 4, 5}, {1, 1, 7, 6}, {.mode = "cubic"}),
      resized("cubic, outside excluded", {1, 1, 4, 5}, {1, 1, 7, 3},
              {.mode = "cubic", .cubic_coefficient = -0.5, .exclude_outside = true}),
      resized("cubic, antialias", {1, 1, 8, 9}, {1, 1, 3, 4}, {.mode = "cubic", .antialias = true}),
      resized("one axis", {6}, {4}, {.mode = "linear"}),
      resized("three dimensions", {1, 1, 2, 3, 2}, {1, 1, 4, 3, 3}, {.mode = "linear"}),
      resized("nearest, TensorFlow half pixel", {1, 1, 7}, {1, 1, 3},
              {.coordinates = "tf_half_pixel_for_nn", .nearest = "floor"}),
      resized("half pixel symmetric", {1, 1, 4}, {1, 1, 5},
              {.mode = "linear", .coordinates = "half_pixel_symmetric"}),
      scaled("scales", {{"mode", std::string("linear")}}, {1, 1, 1.5, 0.6}),
      scaled("scales of chosen axes",
             {{"mode", std::string("cubic")}, {"axes", std::vector<std::int64_t>{3, 2}}}, {0.8, 2}),
      {"Resize",
       "crop",
       [](Builder& builder, std::span<const Var> x) {
         const Var roi = builder.constant(f64({4}, {0.4, -0.2, 0.6, 0.8}).converted(ElementType::f32));
         return std::vector{
             builder.node1("Resize", {x[0], roi, Var(), builder.integers({3, 4})},
                           {{"mode", std::string("linear")},
                            {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                            {"extrapolation_value", 10.0}})};
       },
       {random_tensor({4, 5}, 133)},
       Smooth::twice,
       false},
      {"Upsample",
       "nearest",
       OF(b.node1("Upsample", {x[0], b.constant(f64({4}, {1, 1, 2, 3}).converted(ElementType::f32))})),
       {picture},
       Smooth::twice,
       false},
      {"Upsample",
       "linear",
       OF(b.node1("Upsample", {x[0], b.constant(f64({4}, {1, 1, 2, 1.5}).converted(ElementType::f32))},
                  {{"mode", std::string("linear")}})),
       {picture},
       Smooth::twice,
       false},
  };
}

}  // namespace superstep::op::test
