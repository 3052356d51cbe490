// What both directions of Winograd's transforms share. Included once for each instruction set, as
// vector-inl.h, which explains the guard.
#if defined(SUPERSTEP_WINOGRAD_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_WINOGRAD_LOOPS_INL_H
#undef SUPERSTEP_WINOGRAD_LOOPS_INL_H
#else
#define SUPERSTEP_WINOGRAD_LOOPS_INL_H
#endif

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector-inl.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"
#include "superstep/target/cpu/kernels/winograd/winograd_matrices.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto vector_width = static_cast<std::int64_t>(lanes);

// Which columns of a mirrored pair of rows: all, those with equal signs, those with opposite signs.
enum class Part { all, equal, opposite };

template <class M>
constexpr bool takes_part(std::size_t row, std::size_t column, Part part) {
  const auto& at = M::value.at;
  if (at[row][column] == 0) return false;
  return part == Part::all || (at[row][column] == at[row + 1][column]) == (part == Part::equal);
}

template <class M>
constexpr std::size_t first_part(std::size_t row, Part part) {
  std::size_t column = 0;
  while (column + 1 < M::value.columns && !takes_part<M>(row, column, part)) ++column;
  return column;
}

HWY_INLINE V times(double factor, V v) {
  if (factor == 1) return v;
  if (factor == -1) return hn::Neg(v);
  return hn::Mul(constant(static_cast<float>(factor)), v);
}

HWY_INLINE V plus(V sum, double factor, V v) {
  if (factor == 1) return hn::Add(sum, v);
  if (factor == -1) return hn::Sub(sum, v);
  return hn::MulAdd(constant(static_cast<float>(factor)), v, sum);
}

// The sum over some columns of matrix[row][column] * x(column).
template <class M, std::size_t row, Part part, class X>
HWY_INLINE V row_sum(const X& x) {
  constexpr std::size_t first = first_part<M>(row, part);
  V sum = times(M::value.at[row][first], x(std::integral_constant<std::size_t, first>()));
  unrolled<M::value.columns>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
    if constexpr (column > first && takes_part<M>(row, column, part))
      sum = plus(sum, M::value.at[row][column], x(column));
  });
  return sum;
}

// The second row of a mirrored pair.
template <class M>
constexpr bool is_second(std::size_t row) {
  return row > 0 && M::value.mirrored(row - 1);
}

HWY_INLINE bool has(const WinogradRun::Range& range, std::int64_t i) {
  return i >= range.begin && i < range.end;
}

// All positions of a square of `side` exist.
HWY_INLINE bool is_whole(const WinogradRun& run, std::int64_t side) {
  return run.rows.begin <= 0 && run.rows.end >= side && run.columns.begin <= 0 && run.columns.end >= side;
}

// body(stretch, element, count) for every vector of every stretch, `count` elements of which belong to it.
template <class Body>
HWY_INLINE void for_each_vector(const WinogradRun& run, const Body& body) {
  for (std::int64_t i = 0; i < run.runs; ++i)
    for (std::int64_t e = 0; e < run.length; e += vector_width)
      body(i, e, std::min(vector_width, run.length - e));
}

// make.template operator()<tile>() for a tile of 2, 3 or 4 positions a side.
template <class Make>
auto for_tile(std::int64_t tile, const Make& make) {
  if (tile == 2) return make.template operator()<2>();
  if (tile == 3) return make.template operator()<3>();
  return make.template operator()<4>();
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
