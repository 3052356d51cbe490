// Random numbers, and what is made out of nothing.
#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

Case mask(Draw& d, const char* op) {
  return node_case(
      op, {op::test::i64({}, {d.number(0, 1000)})},
      {{"seed", d.number(0, 99)}, {"stream", d.number(0, 9)}, {"keep", 0.6}, {"shape", d.shape().extents()}},
      1, Smooth::no);
}
Case normal(Draw& d, const char* op) {
  return node_case(op, {op::test::i64({}, {d.number(0, 1000)})},
                   {{"seed", d.number(0, 99)}, {"stream", d.number(0, 9)}, {"shape", d.shape().extents()}}, 1,
                   Smooth::no);
}
Case dropout(Draw& d, const char* op) {
  return node_case(op, {d.normal(d.shape()), op::test::f64({}, {0.3}), op::test::booleans({}, {1})},
                   {{"seed", d.number(0, 99)}}, 2, Smooth::no);
}
// Served, it is the identity; an axis of samples it must have.
Case depth(Draw& d, const char* op) { return node_case(op, {d.normal(d.shape())}, {{"ratio", 0.3}}); }
Case like(Draw& d, const char* op) {
  return node_case(op, {d.uniform(d.shape(), 0, 1)}, {{"seed", static_cast<double>(d.number(0, 99))}}, 1,
                   Smooth::no);
}
// Boxes of integral corners: their overlaps are the same in every precision.
Case kept_boxes(Draw& d, const char* op) {
  const std::int64_t pictures = d.number(1, 2), classes = d.number(1, 3), boxes = d.number(1, 12);
  return node_case(
      op,
      {d.whole({pictures, boxes, 4}, 0, 9, ElementType::f32),
       d.whole({pictures, classes, boxes}, -20, 20, ElementType::f32), d.whole({1}, 0, 6, ElementType::i64),
       d.uniform({1}, 0.31, 0.32), d.uniform({1}, 0.1, 0.2)},
      {{"bound", d.number(0, 20)}, {"center_point_box", d.number(0, 1)}}, 2, Smooth::no);
}
Case shaped(Draw& d, const char* op) {
  return node_case(op, {}, {{"seed", static_cast<double>(d.number(0, 99))}, {"shape", d.shape().extents()}},
                   1, Smooth::no);
}
Case multinomial(Draw& d, const char* op) {
  return node_case(op, {d.normal({d.number(1, 30), d.number(1, 6)})},
                   {{"sample_size", d.number(1, 5)}, {"seed", 3.0}}, 1, Smooth::no);
}
// Larger than what is folded when a graph is compiled.
Case constant(Draw& d, const char* op) {
  Case result = node_case(op, {d.normal({3000})});
  const double value = static_cast<double>(d.number(-3, 3));
  result.function = [=](op::Builder& b, std::span<const op::Var> x) {
    const op::Var shape = b.integers({3000});
    const op::Var made =
        b.node1("ConstantOfShape", {shape}, {{"value", Tensor::full(x[0].element(), {1}, value)}});
    return std::vector{b.node1("Add", {made, x[0]})};
  };
  result.smooth = Smooth::no;
  return result;
}

}  // namespace

std::vector<Generator> other_generators() {
  return {{{"superstep.RandomMask"}, mask},
          {{"superstep.RandomNormal"}, normal},
          {{"Dropout"}, dropout},
          {{"superstep.KeptBoxes"}, kept_boxes},
          {{"superstep.StochasticDepth"}, depth},
          {{"RandomUniformLike", "RandomNormalLike", "Bernoulli"}, like},
          {{"RandomUniform", "RandomNormal"}, shaped},
          {{"Multinomial"}, multinomial},
          {{"ConstantOfShape"}, constant}};
}

}  // namespace superstep::matrix
