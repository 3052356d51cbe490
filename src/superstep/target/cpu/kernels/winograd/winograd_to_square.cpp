// Winograd's transforms from values at pairs of points back to squares of positions.
#include "superstep/target/cpu/kernels/core/vector_targets.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/winograd/winograd_to_square.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/winograd/winograd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

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

// A vector of positions and how far they lie apart.
struct Square {
  float* first;
  std::int64_t row_stride, column_stride;
  bool accumulate;
};

// square [+]= M^T planes M over one vector
template <class M>
HWY_INLINE void fill_square(const float* planes, std::int64_t plane_stride, const Square& square) {
  constexpr std::size_t in = M::value.rows, out = M::value.columns;
  V half[out][in];
  unrolled<in>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
    V x[in], y[out];
    unrolled<in>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
      x[row] = load(planes + static_cast<std::int64_t>(row * in + column) * plane_stride);
    });
    multiply_transposed<M>(x, y);
    unrolled<out>([&](auto row) SUPERSTEP_INLINE_LAMBDA { half[row][column] = y[row]; });
  });
  unrolled<out>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
    V y[out];
    multiply_transposed<M>(half[row], y);
    unrolled<out>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
      float* at = square.first + static_cast<std::int64_t>(row) * square.row_stride +
                  static_cast<std::int64_t>(column) * square.column_stride;
      store(square.accumulate ? hn::Add(load(at), y[column]) : y[column], at);
    });
  });
}

// One vector of a square that is not all there, or not full.
HWY_INLINE void scatter(const WinogradRun& run, std::int64_t side, const float* from, std::int64_t n,
                        float* to) {
  const auto count = static_cast<std::size_t>(n);
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t column = 0; column < side; ++column, from += vector_width) {
      if (!has(run.rows, row) || !has(run.columns, column)) continue;
      float* at = to + row * run.row_stride + column * run.column_stride;
      const V v = load(from);
      store_first(run.accumulate ? hn::Add(load_first(at, count), v) : v, at, count);
    }
}

template <class M>
void to_square(const WinogradRun& run) {
  constexpr auto side = static_cast<std::int64_t>(M::value.columns);
  const bool whole = is_whole(run, side);
  alignas(64) float local[side * side * vector_width];
  for_each_vector(run, [&](std::int64_t stretch, std::int64_t element, std::int64_t n) HWY_ATTR {
    float* square = static_cast<float*>(run.square) + stretch * run.run_stride + element;
    const float* planes = static_cast<const float*>(run.planes) + stretch * run.plane_run_stride + element;
    const bool direct = whole && n == vector_width;
    fill_square<M>(planes, run.plane_stride,
                   direct ? Square{square, run.row_stride, run.column_stride, run.accumulate}
                          : Square{local, side * vector_width, vector_width, false});
    if (!direct) scatter(run, side, local, n, square);
  });
}

WinogradSquareLoops square_loops_for(std::int64_t number) {
  using namespace winograd;
  return for_tile(number, []<std::size_t tile>() {
    return WinogradSquareLoops{to_square<OutputMatrix<tile>>, to_square<FilterMatrix<tile>>};
  });
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(square_loops_for);

WinogradSquareLoops winograd_square_loops(std::int64_t tile) {
  return SUPERSTEP_VECTOR_FUNCTION(square_loops_for)(tile);
}

}  // namespace superstep::kernels
#endif
