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

// body(row, y[row]) for y = M x, a pair of rows at a time: x(column) is asked for once a pair.
template <class M, class X, class Body>
HWY_INLINE void multiply(const X& x, const Body& body) {
  unrolled<M::value.rows>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
    if constexpr (M::value.mirrored(row)) {
      const V equal = row_sum<M, row, Part::equal>(x), opposite = row_sum<M, row, Part::opposite>(x);
      body(row, hn::Add(equal, opposite));
      body(std::integral_constant<std::size_t, row + 1>(), hn::Sub(equal, opposite));
    } else if constexpr (!is_second<M>(row)) {
      body(row, row_sum<M, row, Part::all>(x));
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
    } else if constexpr (!is_second<M>(row)) {
      folded[row] = x[row];
    }
  });
  unrolled<M::value.columns>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
    V sum = hn::Zero(f32_tag);
    unrolled<M::value.rows>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
      constexpr double factor = M::value.at[row][column];
      if constexpr (factor != 0 && !is_second<M>(row)) {
        constexpr bool opposite = M::value.mirrored(row) && !takes_part<M>(row, column, Part::equal);
        sum = plus(sum, factor, folded[row + (opposite ? 1 : 0)]);
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

bool has(const WinogradRun::Range& range, std::int64_t i) { return i >= range.begin && i < range.end; }

// planes = M square M^T: a row of M over columns, then M over what that gave. Rows of the square are read
// again for every row of M, so that nothing in between needs memory. `whole`: all positions exist.
template <class M, bool whole>
HWY_INLINE void fill_planes(const WinogradRun& run) {
  constexpr std::size_t in = M::value.columns, out = M::value.rows;
  const std::int64_t row_stride = run.row_stride, column_stride = run.column_stride,
                     plane_stride = run.plane_stride;
  for_each_vector(run, [&](const float* square, float* planes, std::size_t n) SUPERSTEP_INLINE_LAMBDA {
    const auto store_row = [&](auto row, const V* sums) SUPERSTEP_INLINE_LAMBDA {
      multiply<M>([&](auto column) SUPERSTEP_INLINE_LAMBDA { return sums[column]; },
                  [&](auto column, V v) SUPERSTEP_INLINE_LAMBDA {
                    store_first(v, planes + static_cast<std::int64_t>(row * out + column) * plane_stride, n);
                  });
    };
    unrolled<out>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
      if constexpr (!is_second<M>(row)) {
        V first[in], second[in];
        unrolled<in>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
          const auto c = static_cast<std::int64_t>(column);
          const auto position = [&](auto from) SUPERSTEP_INLINE_LAMBDA {
            const auto r = static_cast<std::int64_t>(from);
            if (!whole && !(has(run.rows, r) && has(run.columns, c))) return hn::Zero(f32_tag);
            return load_first(square + r * row_stride + c * column_stride, n);
          };
          if constexpr (M::value.mirrored(row)) {
            const V equal = row_sum<M, row, Part::equal>(position),
                    opposite = row_sum<M, row, Part::opposite>(position);
            first[column] = hn::Add(equal, opposite);
            second[column] = hn::Sub(equal, opposite);
          } else {
            first[column] = row_sum<M, row, Part::all>(position);
          }
        });
        store_row(row, first);
        if constexpr (M::value.mirrored(row))
          store_row(std::integral_constant<std::size_t, row + 1>(), second);
      }
    });
  });
}

template <class M>
bool is_whole(const WinogradRun& run) {
  constexpr auto all = static_cast<std::int64_t>(M::value.columns);
  return run.rows.begin == 0 && run.rows.end == all && run.columns.begin == 0 && run.columns.end == all;
}

template <class M>
void to_planes(const WinogradRun& run) {
  if (is_whole<M>(run))
    fill_planes<M, true>(run);
  else
    fill_planes<M, false>(run);
}

// square [+]= M^T planes M
template <class M, bool whole>
HWY_INLINE void fill_square(const WinogradRun& run) {
  constexpr std::size_t in = M::value.rows, out = M::value.columns;
  const std::int64_t row_stride = run.row_stride, column_stride = run.column_stride,
                     plane_stride = run.plane_stride;
  const bool accumulate = run.accumulate;
  for_each_vector(run, [&](float* square, const float* planes, std::size_t n) SUPERSTEP_INLINE_LAMBDA {
    V half[out][in];
    unrolled<in>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
      V x[in], y[out];
      unrolled<in>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
        x[row] = load_first(planes + static_cast<std::int64_t>(row * in + column) * plane_stride, n);
      });
      multiply_transposed<M>(x, y);
      unrolled<out>([&](auto row) SUPERSTEP_INLINE_LAMBDA { half[row][column] = y[row]; });
    });
    unrolled<out>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
      const auto r = static_cast<std::int64_t>(row);
      if (!whole && !has(run.rows, r)) return;
      V y[out];
      multiply_transposed<M>(half[row], y);
      unrolled<out>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
        const auto c = static_cast<std::int64_t>(column);
        if (!whole && !has(run.columns, c)) return;
        float* at = square + r * row_stride + c * column_stride;
        store_first(accumulate ? hn::Add(load_first(at, n), y[column]) : y[column], at, n);
      });
    });
  });
}

template <class M>
void to_square(const WinogradRun& run) {
  if (is_whole<M>(run))
    fill_square<M, true>(run);
  else
    fill_square<M, false>(run);
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
