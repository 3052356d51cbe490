#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

Case unary(Draw& d, const char* op) { return node_case(op, {d.normal(d.shape())}); }
Case positive(Draw& d, const char* op) { return node_case(op, {d.uniform(d.shape(), 0.3, 2)}); }
Case inside(Draw& d, const char* op) { return node_case(op, {d.uniform(d.shape(), -0.8, 0.8)}); }
Case above(Draw& d, const char* op) { return node_case(op, {d.uniform(d.shape(), 1.3, 4)}); }
Case steps(Draw& d, const char* op) { return node_case(op, {d.normal(d.shape(), 3)}, {}, 1, Smooth::no); }

// Shapes that broadcast to one another: axes of one element, and axes left out in front.
std::vector<Shape> broadcast(Draw& d, int count) {
  const Shape all = d.shape(1, 4);
  std::vector<Shape> shapes{all};
  while (static_cast<int>(shapes.size()) < count) {
    Extents extents(all.begin() + d.number(0, all.rank()), all.end());
    for (std::int64_t& extent : extents)
      if (d.number(0, 2) == 0) extent = 1;
    shapes.push_back(Shape(extents));
  }
  if (d.coin()) std::swap(shapes[0], shapes.back());
  return shapes;
}

Case binary(Draw& d, const char* op) {
  const auto shapes = broadcast(d, 2);
  return node_case(op, {d.normal(shapes[0]), d.normal(shapes[1])});
}
Case quotient(Draw& d, const char* op) {
  const auto shapes = broadcast(d, 2);
  return node_case(op, {d.uniform(shapes[0], 0.5, 2), d.uniform(shapes[1], 0.5, 2)});
}
Case several(Draw& d, const char* op) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : broadcast(d, static_cast<int>(d.number(1, 4)))) inputs.push_back(d.normal(shape));
  return node_case(op, inputs);
}
Case comparison(Draw& d, const char* op) {
  const auto shapes = broadcast(d, 2);
  return node_case(op,
                   {d.whole(shapes[0], -2, 2, ElementType::i32), d.whole(shapes[1], -2, 2, ElementType::i32)},
                   {}, 1, Smooth::no);
}
Case logic(Draw& d, const char* op) {
  const auto shapes = broadcast(d, 2);
  return node_case(
      op, {d.whole(shapes[0], 0, 1, ElementType::boolean), d.whole(shapes[1], 0, 1, ElementType::boolean)},
      {}, 1, Smooth::no);
}
Case negation(Draw& d, const char* op) {
  return node_case(op, {d.whole(d.shape(), 0, 1, ElementType::boolean)}, {}, 1, Smooth::no);
}
Case bits(Draw& d, const char* op) {
  const auto shapes = broadcast(d, 2);
  std::vector<Tensor> inputs{d.whole(shapes[0], 0, 200, ElementType::u8)};
  if (std::string(op) != "BitwiseNot") inputs.push_back(d.whole(shapes[1], 0, 7, ElementType::u8));
  op::Attributes attributes;
  if (std::string(op) == "BitShift") attributes.set("direction", std::string(d.coin() ? "LEFT" : "RIGHT"));
  return node_case(op, inputs, attributes, 1, Smooth::no);
}
Case remainder(Draw& d, const char* op) {
  const auto shapes = broadcast(d, 2);
  return node_case(
      op, {d.whole(shapes[0], -20, 20, ElementType::i32), d.whole(shapes[1], 1, 5, ElementType::i32)},
      {{"fmod", d.number(0, 1)}}, 1, Smooth::no);
}
Case where(Draw& d, const char* op) {
  const auto shapes = broadcast(d, 3);
  return node_case(
      op, {d.whole(shapes[0], 0, 1, ElementType::boolean), d.normal(shapes[1]), d.normal(shapes[2])});
}
Case cast(Draw& d, const char* op) {
  return node_case(op, {d.normal(d.shape(), 4)}, {{"to", d.one_of<std::int64_t>({1, 6, 10})}}, 1, Smooth::no);
}
Case bit_cast(Draw& d, const char* op) {
  return node_case(op, {d.whole(d.shape(), 0, 1000, ElementType::i32)}, {{"to", std::int64_t{12}}}, 1,
                   Smooth::no);
}
Case cast_like(Draw& d, const char* op) {
  return node_case(op, {d.normal(d.shape(), 4), d.whole({2}, 0, 1, ElementType::i32)}, {}, 1, Smooth::no);
}
Case slope(Draw& d, const char* op) { return node_case(op, {d.normal(d.shape())}, {{"alpha", 0.3}}); }
Case clip(Draw& d, const char* op) {
  return node_case(
      op, {d.normal(d.shape()), d.coin() ? d.uniform({}, -1, -0.2) : left_out(), d.uniform({}, 0.2, 1)});
}
Case parametric(Draw& d, const char* op) {
  const Shape shape = d.shape(2, 4);
  Extents slopes(static_cast<std::size_t>(shape.rank() - 1), 1);
  slopes[0] = shape[1];
  return node_case(op, {d.normal(shape), d.normal(Shape(slopes))});
}
Case gated(Draw& d, const char* op) {
  const Shape shape = d.shape();
  return node_case(op, {d.normal(shape), d.normal(shape)});
}
Case binarizer(Draw& d, const char* op) {
  return node_case(op, {d.normal(d.shape())}, {{"threshold", 0.2}}, 1, Smooth::no);
}

}  // namespace

std::vector<Generator> elementwise_generators() {
  return {
      {{"Neg",
        "Abs",
        "Exp",
        "Erf",
        "Identity",
        "Sin",
        "Cos",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Relu",
        "Sigmoid",
        "Tanh",
        "Softplus",
        "Softsign",
        "Selu",
        "HardSigmoid",
        "HardSwish",
        "Gelu",
        "Mish",
        "Swish",
        "superstep.PartsMean"},
       unary},
      {{"Log", "Sqrt", "Reciprocal"}, positive},
      {{"Asin", "Acos", "Atanh", "Tan"}, inside},
      {{"Acosh"}, above},
      {{"Sign", "Floor", "Ceil", "Round", "IsNaN", "IsInf", "Shrink"}, steps},
      {{"Add", "Sub", "Mul"}, binary},
      {{"Div", "Pow"}, quotient},
      {{"Min", "Max", "Sum", "Mean"}, several},
      {{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}, comparison},
      {{"And", "Or", "Xor"}, logic},
      {{"Not"}, negation},
      {{"BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}, bits},
      {{"Mod"}, remainder},
      {{"Where"}, where},
      {{"Cast"}, cast},
      {{"BitCast"}, bit_cast},
      {{"CastLike"}, cast_like},
      {{"LeakyRelu", "Elu", "Celu", "ThresholdedRelu"}, slope},
      {{"Clip"}, clip},
      {{"PRelu"}, parametric},
      {{"SwiGLU"}, gated},
      {{"Binarizer"}, binarizer},
  };
}

}  // namespace superstep::matrix
