#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

Case matmul(Draw& d, const char* op) {
  const std::int64_t m = d.number(1, 20), k = d.number(1, 30), n = d.number(1, 20);
  Extents batch = d.extents(d.number(0, 3), 1, 3), a = batch, b;
  if (d.coin()) b = batch;
  // Axes that one of the two has and the other broadcasts, in any order: more than strides can join.
  if (d.coin())
    for (std::size_t i = 0; i < b.size(); ++i)
      if (d.coin()) (d.coin() ? a : b)[i] = 1;
  a.insert(a.end(), {m, k});
  b.insert(b.end(), {k, n});
  return node_case(op, {d.normal(Shape(a)), d.normal(Shape(b))});
}

Case gemm(Draw& d, const char* op) {
  const std::int64_t m = d.number(1, 30), k = d.number(1, 60), n = d.number(1, 30), ta = d.number(0, 1),
                     tb = d.number(0, 1);
  std::vector<Tensor> inputs{d.normal(ta ? Shape{k, m} : Shape{m, k}),
                             d.normal(tb ? Shape{n, k} : Shape{k, n})};
  if (d.coin()) inputs.push_back(d.normal(d.coin() ? Shape{n} : Shape{m, n}));
  return node_case(op, inputs, {{"transA", ta}, {"transB", tb}, {"alpha", 0.5}, {"beta", 2.0}});
}

Case einsum(Draw& d, const char* op) {
  const std::int64_t b = d.number(1, 4), i = d.number(1, 9), j = d.number(1, 9), k = d.number(1, 9);
  const std::pair<const char*, std::vector<Shape>> all[] = {
      {"ij,jk->ik", {{i, j}, {j, k}}},
      {"bij,bjk->bik", {{b, i, j}, {b, j, k}}},
      {"bij,bik->bjk", {{b, i, j}, {b, i, k}}},
      {"ij,k->i", {{i, j}, {k}}},
      {"iij->j", {{i, i, j}}},
      {"...ij,jk->...ik", {{b, 2, i, j}, {j, k}}},
      {"bi,bj,bk->ijk", {{b, i}, {b, j}, {b, k}}},
  };
  const auto& [equation, shapes] = all[d.number(0, 6)];
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) inputs.push_back(d.normal(shape));
  return node_case(op, inputs, {{"equation", std::string(equation)}});
}

Tensor bytes(Draw& d, const Shape& shape) { return d.whole(shape, 0, 200, ElementType::u8); }

Case matmul_integer(Draw& d, const char* op) {
  const std::int64_t m = d.number(1, 20), k = d.number(1, 30), n = d.number(1, 20);
  return node_case(op,
                   {bytes(d, {d.number(1, 3), m, k}), bytes(d, {k, n}),
                    bytes(d, d.coin() ? Shape{} : Shape{m}), bytes(d, d.coin() ? Shape{} : Shape{n})},
                   {}, 1, Smooth::no);
}
Case conv_integer(Draw& d, const char* op) {
  const std::int64_t in = d.number(1, 5), out = d.number(1, 9);
  return node_case(op,
                   {bytes(d, {d.number(1, 3), in, d.number(3, 9), d.number(3, 9)}), bytes(d, {out, in, 2, 3}),
                    bytes(d, {}), bytes(d, d.coin() ? Shape{} : Shape{out})},
                   {{"pads", Extents{1, 0, 1, 1}}, {"strides", Extents{d.number(1, 2), 1}}}, 1, Smooth::no);
}
Case qlinear_matmul(Draw& d, const char* op) {
  const std::int64_t m = d.number(1, 20), k = d.number(1, 30), n = d.number(1, 20);
  const Shape columns = d.coin() ? Shape{} : Shape{n};
  return node_case(op,
                   {bytes(d, {2, m, k}), d.uniform({}, 0.01, 0.02), bytes(d, {}), bytes(d, {k, n}),
                    d.uniform(columns, 0.01, 0.02), bytes(d, columns), d.uniform({}, 0.5, 1), bytes(d, {})},
                   {}, 1, Smooth::no);
}
Case qlinear_conv(Draw& d, const char* op) {
  const std::int64_t in = d.number(1, 5), out = d.number(1, 9);
  const Shape channels = d.coin() ? Shape{} : Shape{out};
  return node_case(op,
                   {bytes(d, {d.number(1, 3), in, d.number(3, 9), d.number(3, 9)}), d.uniform({}, 0.01, 0.02),
                    bytes(d, {}), bytes(d, {out, in, 3, 2}), d.uniform(channels, 0.01, 0.02),
                    d.whole(channels, 0, 9, ElementType::u8), d.uniform({}, 0.5, 1), bytes(d, {}),
                    d.whole({out}, -99, 99, ElementType::i32)},
                   {{"pads", Extents{1, 1, 0, 1}}}, 1, Smooth::no);
}

Case quantize(Draw& d, const char* op) {
  const Shape x = d.shape(2, 4);
  const int axis = d.axis(x);
  const std::int64_t block = d.number(0, 2) ? 0 : d.number(1, 3);
  Extents scale;
  if (block > 0) {
    scale = x.extents();
    auto& extent = scale[static_cast<std::size_t>(axis)];
    extent = (extent + block - 1) / block;
  } else if (d.coin()) {
    scale = {x[axis]};
  }
  op::Attributes attributes{{"axis", std::int64_t{axis}}};
  if (block > 0) attributes.set("block_size", block);
  const bool to_bytes = std::string(op) == "QuantizeLinear";
  // Scales and data that make no halves, which another rounding of the scale would turn.
  return node_case(op,
                   {to_bytes ? d.whole(x, -90, 90, ElementType::i32) : bytes(d, x),
                    d.uniform(Shape(scale), 0.51, 0.93), bytes(d, Shape(scale))},
                   attributes, 1, Smooth::no);
}
Case dynamic(Draw& d, const char* op) { return node_case(op, {d.normal(d.shape())}, {}, 3, Smooth::no); }

Case straight_through(Draw& d, const char* op) {
  const Shape x = d.shape();
  return node_case(op, {d.normal(x), d.normal(x), d.whole(x, 0, 1, ElementType::boolean)}, {}, 1, Smooth::no);
}

Case determinant(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 4);
  Extents extents = d.extents(d.number(1, 2), 1, 5);
  extents.insert(extents.end(), {n, n});
  return node_case(op, {d.normal(Shape(extents))});
}

// Diagonals that outweigh their rows: positive definite, whatever stands above them.
Tensor heavy_diagonals(Draw& d, const Extents& stack, std::int64_t n) {
  Extents extents = stack;
  extents.insert(extents.end(), {n, n});
  Tensor a = d.uniform(Shape(extents), -0.3, 0.3);
  for (std::int64_t i = 0; i < a.element_count(); i += n * n)
    for (std::int64_t k = 0; k < n; ++k)
      a.set(i + k * n + k, 2 + 0.3 * static_cast<double>(n) + a.at(i + k * n + k));
  return a;
}

Case cholesky(Draw& d, const char* op) {
  return node_case(op, {heavy_diagonals(d, d.extents(d.number(0, 2), 1, 4), d.number(1, 24))});
}

Case triangular_solve(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 24);
  const Extents stack = d.extents(d.number(0, 2), 1, 4);
  Extents b = stack;
  b.insert(b.end(), {n, d.number(1, 40)});
  return node_case(op, {heavy_diagonals(d, stack, n), d.normal(Shape(b))}, {{"transposed", d.number(0, 1)}});
}

}  // namespace

std::vector<Generator> product_generators() {
  return {{{"MatMul"}, matmul},
          {{"Gemm"}, gemm},
          {{"Einsum"}, einsum},
          {{"MatMulInteger"}, matmul_integer},
          {{"ConvInteger"}, conv_integer},
          {{"QLinearMatMul"}, qlinear_matmul},
          {{"QLinearConv"}, qlinear_conv},
          {{"QuantizeLinear", "DequantizeLinear"}, quantize},
          {{"DynamicQuantizeLinear"}, dynamic},
          {{"superstep.StraightThrough"}, straight_through},
          {{"Det"}, determinant},
          {{"superstep.Cholesky"}, cholesky},
          {{"superstep.TriangularSolve"}, triangular_solve}};
}

}  // namespace superstep::matrix
