// Transposition of f32 tiles in registers, for each instruction set.
#if defined(SUPERSTEP_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_TRANSPOSE_INL_H
#undef SUPERSTEP_TRANSPOSE_INL_H
#else
#define SUPERSTEP_TRANSPOSE_INL_H
#endif

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// y[j * y_stride + i] = x[i * x_stride + j] for i < rows, j < columns, element by element.
template <class T>
HWY_INLINE void transpose_scalar(const T* x, std::int64_t x_stride, T* y, std::int64_t y_stride,
                                 std::int64_t rows, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) y[j * y_stride + i] = x[i * x_stride + j];
}

#if HWY_MAX_BYTES < 32  // vectors without 128-bit blocks to combine
HWY_INLINE void transpose(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                          std::int64_t rows, std::int64_t columns) {
  transpose_scalar(x, x_stride, y, y_stride, rows, columns);
}
#else

// The 128-bit block of x in each 128-bit block of the result, `step` elements apart.
HWY_INLINE V load_blocks(const float* x, std::int64_t step) {
  const hn::Full128<float> block;
  const auto low = hn::Combine(hn::Full256<float>(), hn::LoadU(block, x + step), hn::LoadU(block, x));
#if HWY_TARGET == HWY_AVX2
  return low;
#else
  const auto high =
      hn::Combine(hn::Full256<float>(), hn::LoadU(block, x + 3 * step), hn::LoadU(block, x + 2 * step));
  return hn::Combine(f32_tag, high, low);
#endif
}

// `lanes` rows by 4 columns: each vector gathers the rows r, r + 4, ... so that a 4 x 4 transposition inside
// the 128-bit blocks leaves whole columns.
HWY_INLINE void transpose_strip(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride) {
  const hn::Repartition<double, F> wide;
  const V r0 = load_blocks(x, 4 * x_stride), r1 = load_blocks(x + x_stride, 4 * x_stride);
  const V r2 = load_blocks(x + 2 * x_stride, 4 * x_stride), r3 = load_blocks(x + 3 * x_stride, 4 * x_stride);
  const auto a = hn::BitCast(wide, hn::InterleaveLower(f32_tag, r0, r1));
  const auto b = hn::BitCast(wide, hn::InterleaveUpper(f32_tag, r0, r1));
  const auto c = hn::BitCast(wide, hn::InterleaveLower(f32_tag, r2, r3));
  const auto d = hn::BitCast(wide, hn::InterleaveUpper(f32_tag, r2, r3));
  store(hn::BitCast(f32_tag, hn::InterleaveLower(wide, a, c)), y);
  store(hn::BitCast(f32_tag, hn::InterleaveUpper(wide, a, c)), y + y_stride);
  store(hn::BitCast(f32_tag, hn::InterleaveLower(wide, b, d)), y + 2 * y_stride);
  store(hn::BitCast(f32_tag, hn::InterleaveUpper(wide, b, d)), y + 3 * y_stride);
}

HWY_INLINE void transpose(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                          std::int64_t rows, std::int64_t columns) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t i = 0;
  for (; i + width <= rows; i += width) {
    std::int64_t j = 0;
    for (; j + 4 <= columns; j += 4)
      transpose_strip(x + i * x_stride + j, x_stride, y + j * y_stride + i, y_stride);
    transpose_scalar(x + i * x_stride + j, x_stride, y + j * y_stride + i, y_stride, width, columns - j);
  }
  transpose_scalar(x + i * x_stride, x_stride, y + i, y_stride, rows - i, columns);
}
#endif

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
