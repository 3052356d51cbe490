#include "superstep/target/cpu/kernels/winograd_loops.h"

#include "superstep/target/cpu/kernels/vector_targets.h"
#include "superstep/target/cpu/kernels/winograd_matrices.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/winograd_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

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

// The sum over some columns of matrix[row][column] * x[column].
template <class M, std::size_t row, Part part>
HWY_INLINE V row_sum(const V* x) {
  constexpr std::size_t first = first_part<M>(row, part);
  V sum = times(M::value.at[row][first], x[first]);
  unrolled<M::value.columns>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
    if constexpr (column > first && takes_part<M>(row, column, part))
      sum = plus(sum, M::value.at[row][column], x[column]);
  });
  return sum;
}

// y = M x
template <class M>
HWY_INLINE void multiply(const V* x, V* y) {
  unrolled<M::value.rows>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
    if constexpr (M::value.mirrored(row)) {
      const V equal = row_sum<M, row, Part::equal>(x), opposite = row_sum<M, row, Part::opposite>(x);
      y[row] = hn::Add(equal, opposite);
      y[row + 1] = hn::Sub(equal, opposite);
    } else if constexpr (row == 0 || !M::value.mirrored(row == 0 ? 0 : row - 1)) {
      y[row] = row_sum<M, row, Part::all>(x);
    }
  });
}

// y = M^T x
template <class M>
HWY_INLINE void multiply_transposed(const V* x, V* y) {
  V folded[M::value.rows];  // x, with the sum and the difference in place of a mirrored pair
  unrolled<M::value.rows>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
    if constexpr (M::value.mirrored(row)) {
      folded[row] = hn::Add(x[row], x[row + 1]);
      folded[row + 1] = hn::Sub(x[row], x[row + 1]);
    } else if constexpr (row == 0 || !M::value.mirrored(row == 0 ? 0 : row - 1)) {
      folded[row] = x[row];
    }
  });
  unrolled<M::value.columns>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
    V sum = hn::Zero(f32_tag);
    unrolled<M::value.rows>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
      constexpr bool second = row > 0 && M::value.mirrored(row == 0 ? 0 : row - 1);
      constexpr double factor = M::value.at[row][column];
      if constexpr (factor != 0 && !second) {
        constexpr bool differs = M::value.mirrored(row) && M::value.at[row + (row + 1 < M::value.rows)][column] != factor;
        sum = plus(sum, factor, folded[row + (differs ? 1 : 0)]);
      }
    });
    y[column] = sum;
  });
}

template <class Body>
HWY_INLINE void for_each_vector(const WinogradRun& run, const Body& body) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (std::int64_t i = 0; i < run.runs; ++i) {
    float *square = run.square + i * run.run_stride, *planes = run.planes + i * run.plane_run_stride;
    std::int64_t e = 0;
    for (; e + width <= run.length; e += width) body(square + e, planes + e, lanes);
    if (e < run.length) body(square + e, planes + e, static_cast<std::size_t>(run.length - e));
  }
}

// planes = M square M^T. Columns first, then rows of what they gave.
template <class M>
void to_planes(const WinogradRun& run) {
  constexpr std::size_t in = M::value.columns, out = M::value.rows;
  for_each_vector(run, [&](const float* square, float* planes, std::size_t n) SUPERSTEP_INLINE_LAMBDA {
    V half[out][in], x[in], y[out];
    for (std::size_t column = 0; column < in; ++column) {
      const auto c = static_cast<std::int64_t>(column);
      const bool outside = c < run.columns.begin || c >= run.columns.end;
      for (std::size_t row = 0; row < in; ++row) {
        const auto r = static_cast<std::int64_t>(row);
        x[row] = outside || r < run.rows.begin || r >= run.rows.end
                     ? hn::Zero(f32_tag)
                     : load_first(square + r * run.row_stride + c * run.column_stride, n);
      }
      multiply<M>(x, y);
      for (std::size_t row = 0; row < out; ++row) half[row][column] = y[row];
    }
    for (std::size_t row = 0; row < out; ++row) {
      multiply<M>(half[row], y);
      for (std::size_t column = 0; column < out; ++column, planes += run.plane_stride)
        store_first(y[column], planes, n);
    }
  });
}

// square [+]= M^T planes M
template <class M>
void to_square(const WinogradRun& run) {
  constexpr std::size_t in = M::value.rows, out = M::value.columns;
  for_each_vector(run, [&](float* square, const float* planes, std::size_t n) SUPERSTEP_INLINE_LAMBDA {
    V half[out][in], x[in], y[out];
    for (std::size_t column = 0; column < in; ++column) {
      for (std::size_t row = 0; row < in; ++row)
        x[row] = load_first(planes + static_cast<std::int64_t>(row * in + column) * run.plane_stride, n);
      multiply_transposed<M>(x, y);
      for (std::size_t row = 0; row < out; ++row) half[row][column] = y[row];
    }
    for (std::size_t row = 0; row < out; ++row) {
      const auto r = static_cast<std::int64_t>(row);
      if (r < run.rows.begin || r >= run.rows.end) continue;
      multiply_transposed<M>(half[row], y);
      for (std::size_t column = 0; column < out; ++column) {
        const auto c = static_cast<std::int64_t>(column);
        if (c < run.columns.begin || c >= run.columns.end) continue;
        float* at = square + r * run.row_stride + c * run.column_stride;
        store_first(run.accumulate ? hn::Add(load_first(at, n), y[column]) : y[column], at, n);
      }
    }
  });
}

template <std::size_t tile>
WinogradLoops loops_of_tile() {
  using namespace winograd;
  return {to_planes<InputMatrix<tile>>, to_planes<OutputMatrix<tile>>, to_planes<FilterMatrix<tile>>,
          to_square<OutputMatrix<tile>>, to_square<FilterMatrix<tile>>};
}

WinogradLoops loops_for(std::int64_t tile) {
  if (tile == 2) return loops_of_tile<2>();
  if (tile == 3) return loops_of_tile<3>();
  return loops_of_tile<4>();
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops_for);

WinogradLoops winograd_loops(std::int64_t tile) { return SUPERSTEP_VECTOR_FUNCTION(loops_for)(tile); }

}  // namespace superstep::kernels
#endif
