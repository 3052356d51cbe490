// Reductions, running sums, softmax and the normalization of lines.
#include <algorithm>
#include <cmath>

#include "superstep/op/rows/reduction.h"
#include "superstep/target/pjrt/stablehlo/functions.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

Extents axes_of(const Site& s) {
  const int rank = s.in(0).rank();
  std::vector<int> axes;
  if (s.has(1)) {
    const Extents given = s.integers(1, "axes");
    axes = op::reduced_axes(s.attributes(), rank, &given);
  } else {
    axes = op::reduced_axes(s.attributes(), rank, nullptr);
  }
  return {axes.begin(), axes.end()};
}

Value folded(const Site& s, const Value& x, Fold fold) {
  const Extents axes = axes_of(s);
  const Value result = axes.empty() ? x : s.emit.reduce(x, axes, fold);
  return s.emit.reshape(result, s.out_shape());
}

Value in_f64(const Site& s, const Value& x) { return s.emit.convert(x, ElementType::f64); }

// Back to x's type: of whole numbers the fraction is cut off.
Values finished(const Site& s, const Value& result) { return {cast(s.emit, result, s.in(0).element())}; }

// Logarithms and roots of whole numbers are taken in f64.
Value root_or_logarithm(const Site& s, std::string_view function, const Value& x) {
  return s.emit.unary(function, is_floating(x.element()) ? x : in_f64(s, x));
}

Values sum(const Site& s) { return {folded(s, s.in(0), Fold::sum)}; }
Values product(const Site& s) { return {folded(s, s.in(0), Fold::product)}; }

Values mean(const Site& s) {
  std::int64_t count = 1;
  for (std::int64_t axis : axes_of(s)) count *= s.in(0).shape()[static_cast<int>(axis)];
  const Value total = folded(s, s.in(0), Fold::sum);
  if (count == 0) return {total};
  if (is_floating(total.element())) return {s.emit.multiply(total, 1.0 / static_cast<double>(count))};
  // The sum is 64 bits wide before it is divided.
  const ElementType wide = total.element() >= ElementType::u64 ? ElementType::u64 : ElementType::i64;
  const Value whole = folded(s, s.emit.convert(s.in(0), wide), Fold::sum);
  return {
      s.emit.convert(s.emit.divide(whole, s.emit.like(whole, static_cast<double>(count))), total.element())};
}

Values largest(const Site& s) {
  return {folded(s, s.in(0), s.in(0).element() == ElementType::boolean ? Fold::any : Fold::largest)};
}
Values smallest(const Site& s) {
  return {folded(s, s.in(0), s.in(0).element() == ElementType::boolean ? Fold::all : Fold::smallest)};
}

Value size_of(const Site& s, const Value& x) {
  return x.element() >= ElementType::u64 ? x : s.emit.unary("abs", x);
}
// Whole numbers are squared and added in 64 bits, of which the last are kept.
Value square_sum(const Site& s, const Value& x) { return folded(s, s.emit.multiply(x, x), Fold::sum); }
Value wide(const Site& s, const Value& x) {
  if (is_floating(x.element())) return x;
  return s.emit.convert(x, x.element() >= ElementType::u64 ? ElementType::u64 : ElementType::i64);
}

Values sum_square(const Site& s) { return {square_sum(s, s.in(0))}; }
Values l1(const Site& s) { return {folded(s, size_of(s, s.in(0)), Fold::sum)}; }
Values l2(const Site& s) {
  return finished(s, root_or_logarithm(s, "sqrt", square_sum(s, wide(s, s.in(0)))));
}
Values log_sum(const Site& s) {
  return finished(s, root_or_logarithm(s, "log", folded(s, wide(s, s.in(0)), Fold::sum)));
}

// The largest, as x has it.
Value spread(const Site& s, const Value& reduced) {
  const Extents axes = axes_of(s);
  Extents extents = s.in(0).shape().extents();
  for (std::int64_t axis : axes) extents[static_cast<std::size_t>(axis)] = 1;
  return s.emit.expand(s.emit.reshape(reduced, Shape(extents)), s.in(0).shape());
}

// Of what is left of the largest element; that alone where it is infinite or NaN. Of whole numbers the terms
// are whole, too.
Values log_sum_exp(const Site& s) {
  const bool floating = is_floating(s.in(0).element());
  const Value top = folded(s, s.in(0), Fold::largest);
  const Value largest = floating ? top : in_f64(s, top), x = floating ? s.in(0) : in_f64(s, s.in(0));
  const Value none = s.emit.like(largest, 0);
  const Value finite = s.emit.compare("EQ", s.emit.subtract(largest, largest), none);
  const Value shift = s.emit.select(finite, largest, none);
  Value terms = s.emit.unary("exponential", s.emit.subtract(x, spread(s, shift)));
  if (!floating) terms = s.emit.unary("floor", terms);
  const Value total = s.emit.add(s.emit.unary("log", folded(s, terms, Fold::sum)), shift);
  return finished(s, s.emit.select(finite, total, largest));
}

// --- running sums: each round adds what lies twice as far back (W. D. Hillis and G. L. Steele, CACM 29,
// 1986)

Value shifted(const Site& s, const Value& x, int axis, std::int64_t by) {
  const auto rank = static_cast<std::size_t>(x.rank());
  Extents low(rank, 0), high(rank, 0);
  low[static_cast<std::size_t>(axis)] = by;
  high[static_cast<std::size_t>(axis)] = -by;
  return s.emit.pad(x, s.emit.splat(x.element(), {}, 0), low, high);
}

Values running_sum(const Site& s) {
  const int axis = normalize_axis(s.integers(1, "axis").at(0), s.in(0).rank());
  const bool exclusive = s.attributes().integer("exclusive", 0) != 0;
  const bool reversed = s.attributes().integer("reverse", 0) != 0;
  const std::int64_t count = s.in(0).shape()[axis];
  Value x = reversed ? s.emit.reverse(s.in(0), {axis}) : s.in(0);
  if (exclusive && count > 0) x = shifted(s, x, axis, 1);
  for (std::int64_t back = 1; back < count; back *= 2) x = s.emit.add(x, shifted(s, x, axis, back));
  return {reversed ? s.emit.reverse(x, {axis}) : x};
}

// --- lines

Value line_fold(const Site& s, const Value& x, const Extents& axes, Fold fold) {
  Extents extents = x.shape().extents();
  for (std::int64_t axis : axes) extents[static_cast<std::size_t>(axis)] = 1;
  return s.emit.expand(s.emit.reshape(s.emit.reduce(x, axes, fold), Shape(extents)), x.shape());
}

Values softmax(const Site& s) {
  const Value x = s.in(0);
  const Extents axes = {s.axis(-1, x.rank())};
  const Value e = s.emit.unary("exponential", s.emit.subtract(x, line_fold(s, x, axes, Fold::largest)));
  return {s.emit.divide(e, line_fold(s, e, axes, Fold::sum))};
}

Values log_softmax(const Site& s) {
  const Value x = s.in(0);
  const Extents axes = {s.axis(-1, x.rank())};
  const Value away = s.emit.subtract(x, line_fold(s, x, axes, Fold::largest));
  const Value total = line_fold(s, s.emit.unary("exponential", away), axes, Fold::sum);
  return {s.emit.subtract(away, s.emit.unary("log", total))};
}

Value line_mean(const Site& s, const Value& x, const Extents& axes) {
  double count = 1;
  for (std::int64_t axis : axes) count *= static_cast<double>(x.shape()[static_cast<int>(axis)]);
  return s.emit.multiply(line_fold(s, x, axes, Fold::sum), 1 / count);
}

// A line's statistic as the output has it: extent 1 along the axes.
Value first_of(const Site& s, const Value& x, std::size_t output) {
  if (!s.wants(output)) return {};
  const Extents begin(static_cast<std::size_t>(x.rank()), 0);
  return s.emit.slice(x, begin, s.out_shape(output).extents());
}

Values layer_normalization(const Site& s) {
  const Value x = s.in(0);
  Extents axes;
  for (int axis = s.axis(-1, x.rank()); axis < x.rank(); ++axis) axes.push_back(axis);
  const Value mean = line_mean(s, x, axes), away = s.emit.subtract(x, mean);
  const Value variance = line_mean(s, s.emit.multiply(away, away), axes);
  const Value inverse = s.emit.unary("rsqrt", s.emit.add(variance, s.attributes().number("epsilon", 1e-5)));
  const auto line = [&](std::size_t i) {
    return s.emit.expand(s.emit.convert(s.in(i), x.element()), x.shape());
  };
  Value y = s.emit.multiply(s.emit.multiply(away, inverse), line(1));
  if (s.has(2)) y = s.emit.add(y, line(2));
  return {y, first_of(s, mean, 1), first_of(s, inverse, 2)};
}

}  // namespace

std::span<const Lowering> rows_lowerings() {
  static const Lowering table[] = {
      {"ReduceSum", sum},
      {"ReduceMean", mean},
      {"ReduceProd", product},
      {"ReduceMax", largest},
      {"ReduceMin", smallest},
      {"ReduceL1", l1},
      {"ReduceL2", l2},
      {"ReduceLogSum", log_sum},
      {"ReduceLogSumExp", log_sum_exp},
      {"ReduceSumSquare", sum_square},
      {"CumSum", running_sum},
      {"Softmax", softmax},
      {"LogSoftmax", log_softmax},
      {"LayerNormalization", layer_normalization},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
