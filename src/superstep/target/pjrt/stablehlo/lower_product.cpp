// Products of matrices, factors and triangular systems.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/target/pjrt/stablehlo/functions.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/target/pjrt/stablehlo/products.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

Extents counted(std::int64_t count, std::int64_t from = 0) {
  Extents numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), from);
  return numbers;
}

Extents leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

Shape joined(Extents batch, std::int64_t rows, std::int64_t columns) {
  batch.insert(batch.end(), {rows, columns});
  return Shape(batch);
}

Values matmul(const Site& s) {
  const Value product = matrix_product(s.emit, s.in(0), s.in(1), product_type(s.in(0).element()));
  return {s.emit.reshape(product, s.out_shape())};
}

Value scaled(Emitter& emit, const Value& x, double factor) {
  if (factor == 1) return x;
  // Whole numbers are scaled by whole numbers.
  return emit.multiply(
      x, is_floating(x.element()) ? factor : static_cast<double>(static_cast<std::int64_t>(factor)));
}

Values gemm(const Site& s) {
  const bool transpose_a = s.attributes().integer("transA", 0) != 0;
  const bool transpose_b = s.attributes().integer("transB", 0) != 0;
  const ElementType element = product_type(s.in(0).element());
  const Value product = s.emit.dot(s.in(0), s.in(1), {{}, {}, {transpose_a ? 0 : 1}, {transpose_b ? 1 : 0}},
                                   s.out_shape(), element);
  const Value result = scaled(s.emit, product, s.attributes().number("alpha", 1));
  const double beta = s.attributes().number("beta", 1);
  if (!s.has(2) || beta == 0) return {result};
  const Value added = s.emit.expand(s.emit.convert(s.in(2), element), s.out_shape());
  return {s.emit.add(result, scaled(s.emit, added, beta))};
}

// The factor's upper triangle is what the plug-in leaves there; a definition has zeros. What is not positive
// definite gives NaN everywhere in its matrix.
Values cholesky(const Site& s) {
  const Value a = s.in(0);
  const Value factor = s.emit.one("cholesky", {a}, a.type, "lower = true");
  const Value row = s.emit.iota(ElementType::i64, a.shape(), a.rank() - 2);
  const Value column = s.emit.iota(ElementType::i64, a.shape(), a.rank() - 1);
  const Value lower = s.emit.select(s.emit.compare("GE", row, column), factor, s.emit.like(factor, 0));
  const Value bad =
      s.emit.reduce(s.emit.compare("NE", lower, lower), {a.rank() - 2, a.rank() - 1}, Fold::any);
  const Value everywhere = s.emit.broadcast(bad, a.shape(), counted(a.rank() - 2));
  return {s.emit.select(everywhere, s.emit.like(lower, std::numeric_limits<double>::quiet_NaN()), lower)};
}

Values triangular_solve(const Site& s) {
  const bool transposed = s.attributes().integer("transposed", 0) != 0;
  return {s.emit.one("triangular_solve", {s.in(0), s.in(1)}, s.in(1).type,
                     fmt::format("left_side = true, lower = true, unit_diagonal = false, transpose_a = "
                                 "#stablehlo<transpose {}>",
                                 transposed ? "TRANSPOSE" : "NO_TRANSPOSE"))};
}

// --- determinant: Gaussian elimination with the largest pivot of each column, one column a round

struct Elimination {
  const Site& s;
  std::int64_t count, n;  // matrices, and their order

  Value column_number(const Shape& shape, int axis) const {
    return s.emit.iota(ElementType::i64, shape, axis);
  }
  Value over(const Value& x, const Shape& shape, const Extents& axes) const {
    return s.emit.broadcast(x, shape, axes);
  }

  // Column k of each matrix: [count, n].
  Value column(const Value& a, const Value& k) const {
    const Value zero = s.emit.splat(ElementType::i64, {}, 0);
    const Value starts[] = {zero, zero, k};
    return s.emit.reshape(s.emit.dynamic_slice(a, starts, {count, n, 1}), {count, n});
  }
  Value row(const Value& a, const Value& chosen) const {  // `chosen`: truth [count, n], one a matrix
    const Value mask = over(chosen, a.shape(), {0, 1});
    return s.emit.reduce(s.emit.select(mask, a, s.emit.like(a, 0)), {1}, Fold::sum);
  }

  // The row with the largest element at or below row k: [count] numbers.
  Value pivot_row(const Value& values, const Value& k) const {
    const Value rows = column_number({count, n}, 1);
    const Value open = s.emit.compare("GE", rows, over(k, rows.shape(), {}));
    const Value sizes = s.emit.select(open, s.emit.unary("abs", values), s.emit.like(values, -1));
    const Value best = over(s.emit.reduce(sizes, {1}, Fold::largest), sizes.shape(), {0});
    const Value last = s.emit.like(rows, static_cast<double>(n));
    const Value places = s.emit.select(s.emit.compare("EQ", sizes, best), rows, last);
    return s.emit.reduce(places, {1}, Fold::smallest);
  }

  Values round(const Values& state) const {
    const Value &k = state[0], &a = state[1], &determinant = state[2];
    const Value rows = column_number({count, n}, 1), here = over(k, rows.shape(), {});
    const Value values = column(a, k), pivot = pivot_row(values, k);
    const Value at_pivot = s.emit.compare("EQ", rows, over(pivot, rows.shape(), {0}));
    const Value at_k = s.emit.compare("EQ", rows, here);
    const Value upper = row(a, at_k), lower = row(a, at_pivot);
    const Shape& whole = a.shape();
    // Row k goes where the pivot's was, then the pivot's to row k.
    const Value exchanged =
        s.emit.select(over(at_k, whole, {0, 1}), over(lower, whole, {0, 2}),
                      s.emit.select(over(at_pivot, whole, {0, 1}), over(upper, whole, {0, 2}), a));
    const Value diagonal =
        s.emit.reduce(s.emit.select(at_k, column(exchanged, k), s.emit.like(values, 0)), {1}, Fold::sum);
    const Value moved = s.emit.compare("NE", pivot, over(k, pivot.shape(), {}));
    const Value signed_diagonal = s.emit.select(moved, s.emit.negate(diagonal), diagonal);
    const Value zero = s.emit.compare("EQ", diagonal, 0);
    const Value divisor = s.emit.select(zero, s.emit.like(diagonal, 1), diagonal);
    const Value factors = s.emit.divide(column(exchanged, k), over(divisor, values.shape(), {0}));
    const Value below = s.emit.select(s.emit.compare("GT", rows, here), factors, s.emit.like(factors, 0));
    const Value taken = s.emit.multiply(over(below, whole, {0, 1}), over(lower, whole, {0, 2}));
    return {s.emit.add(k, 1), s.emit.subtract(exchanged, taken),
            s.emit.multiply(determinant, signed_diagonal)};
  }
};

Values determinant(const Site& s) {
  const Value x = s.in(0);
  const std::int64_t n = x.shape()[x.rank() - 1], count = s.out_shape().element_count();
  if (n == 0) return {s.emit.splat(x.element(), s.out_shape(), 1)};
  const Elimination elimination{s, count, n};
  const Value starts[] = {s.emit.splat(ElementType::i64, {}, 0), s.emit.reshape(x, {count, n, n}),
                          s.emit.splat(x.element(), {count}, 1)};
  const Values end = s.emit.loop(
      starts,
      [&](const Values& state) { return Values{s.emit.compare("LT", state[0], static_cast<double>(n))}; },
      [&](const Values& state) { return elimination.round(state); });
  return {s.emit.reshape(end[2], s.out_shape())};
}

}  // namespace

ElementType product_type(ElementType element) {
  return element == ElementType::f16 || element == ElementType::bf16 ? ElementType::f32 : element;
}

// Vectors are matrices of one row or column. Where one side has no leading axes, the other's are rows like
// any other; else both get those that they have together.
Value matrix_product(Emitter& emit, Value a, Value b, ElementType element) {
  if (a.rank() == 1) a = emit.reshape(a, {1, a.shape()[0]});
  if (b.rank() == 1) b = emit.reshape(b, {b.shape()[0], 1});
  const std::int64_t m = a.shape()[a.rank() - 2], n = b.shape()[b.rank() - 1];
  if (b.rank() == 2)
    return emit.dot(a, b, {{}, {}, {a.rank() - 1}, {0}}, joined(leading(a.shape()), m, n), element);
  const Shape batch = broadcast_shapes(Shape(leading(a.shape())), Shape(leading(b.shape())));
  a = emit.expand(a, joined(batch.extents(), m, a.shape()[a.rank() - 1]));
  b = emit.expand(b, joined(batch.extents(), b.shape()[b.rank() - 2], n));
  const Extents shared = counted(batch.rank());
  return emit.dot(a, b, {shared, shared, {a.rank() - 1}, {b.rank() - 2}}, joined(batch.extents(), m, n),
                  element);
}

std::span<const Lowering> product_lowerings() {
  static const Lowering table[] = {
      {"MatMul", matmul, Inputs::as_they_are},
      {"Gemm", gemm, Inputs::as_they_are},
      {"superstep.Cholesky", cholesky},
      {"superstep.TriangularSolve", triangular_solve},
      {"Det", determinant},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
