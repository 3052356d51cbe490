#include "superstep/target/cpu/kernels/convolution/planar_loops.h"

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/convolution/planar_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// B vectors of columns of C channels; of the last vector `last` columns.
template <std::size_t C, std::size_t B>
HWY_INLINE void planar_block(const PlanarRow& row, std::int64_t column, std::size_t last) {
  V sums[C * B];
  unrolled<C * B>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sums[i] = hn::Zero(f32_tag); });
  const float* weights = row.weights;
  for (std::int64_t line = 0; line < row.line_count; ++line) {
    const float* x = row.lines[line] + column;
    for (std::int64_t tap = 0; tap < row.taps; ++tap, x += row.dilation, weights += C) {
      V values[B];
      unrolled<B>([&](auto b) SUPERSTEP_INLINE_LAMBDA { values[b] = load(x + b * lanes); });
      unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA {
        const V weight = constant(weights[c]);
        unrolled<B>([&](auto b) SUPERSTEP_INLINE_LAMBDA {
          sums[c * B + b] = hn::MulAdd(weight, values[b], sums[c * B + b]);
        });
      });
    }
  }
  unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA {
    float* y = row.y[c] + column;
    unrolled<B>([&](auto b) SUPERSTEP_INLINE_LAMBDA {
      if (b + 1 < B)
        store(sums[c * B + b], y + b * lanes);
      else
        store_first(sums[c * B + b], y + b * lanes, last);
    });
  });
}

template <std::size_t C>
void planar_row(const PlanarRow& row) {
  constexpr std::size_t together = C == 1 ? 8 : C == 2 ? 4 : C == 3 ? 3 : 2;
  constexpr auto width = static_cast<std::int64_t>(lanes),
                 block = static_cast<std::int64_t>(together * lanes);
  std::int64_t column = 0;
  for (; column + block <= row.columns; column += block) planar_block<C, together>(row, column, lanes);
  for (; column < row.columns; column += width)
    planar_block<C, 1>(row, column, static_cast<std::size_t>(std::min(width, row.columns - column)));
}

// What is behind a row's last columns, where they fill no vector, counts as zero in both factors.
template <std::size_t C, std::size_t T>
void planar_gradient_row(const PlanarGradientRow& row) {
  V sums[T * C];
  unrolled<T * C>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sums[i] = load(row.sums + i * lanes); });
  const auto add = [&](std::int64_t column, const auto& read) SUPERSTEP_INLINE_LAMBDA {
    V dy[C];
    unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA { dy[c] = read(row.dy[c] + column); });
    unrolled<T>([&](auto t) SUPERSTEP_INLINE_LAMBDA {
      const V x = read(row.x + column + static_cast<std::int64_t>(t) * row.dilation);
      unrolled<C>([&](auto c)
                      SUPERSTEP_INLINE_LAMBDA { sums[t * C + c] = hn::MulAdd(x, dy[c], sums[t * C + c]); });
    });
  };
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t column = 0;
  for (; column + width <= row.columns; column += width)
    add(column, [](const float* p) SUPERSTEP_INLINE_LAMBDA { return load(p); });
  if (const auto rest = static_cast<std::size_t>(row.columns - column); rest > 0)
    add(column, [rest](const float* p) SUPERSTEP_INLINE_LAMBDA { return load_first(p, rest); });
  unrolled<T * C>([&](auto i) SUPERSTEP_INLINE_LAMBDA { store(sums[i], row.sums + i * lanes); });
}

void planar_line_of_f32(const void* from, std::int64_t n, float* to) {
  std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
}

void planar_line_of_bf16(const void* from, std::int64_t n, float* to) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  const auto* x = static_cast<const bf16*>(from);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(load(x + i), to + i);
  if (i < n)
    store_first(load_first(x + i, static_cast<std::size_t>(n - i)), to + i, static_cast<std::size_t>(n - i));
}

const PlanarLoops* loops_of_planes() {
  // Sums, cotangents and a vector of x stay in 16 registers.
  static constexpr PlanarLoops loops{
      .of = {planar_row<1>, planar_row<2>, planar_row<3>, planar_row<4>},
      .line_of_f32 = planar_line_of_f32,
      .line_of_bf16 = planar_line_of_bf16,
      .gradient_of = {{planar_gradient_row<1, 1>, planar_gradient_row<1, 2>, planar_gradient_row<1, 3>,
                       planar_gradient_row<1, 4>},
                      {planar_gradient_row<2, 1>, planar_gradient_row<2, 2>, planar_gradient_row<2, 3>,
                       planar_gradient_row<2, 4>},
                      {planar_gradient_row<3, 1>, planar_gradient_row<3, 2>, planar_gradient_row<3, 3>},
                      {planar_gradient_row<4, 1>, planar_gradient_row<4, 2>}},
      .taps_together = {4, 4, 3, 2},
      .lanes = static_cast<std::int64_t>(lanes)};
  return &loops;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops_of_planes);

const PlanarLoops& planar_loops() { return *SUPERSTEP_VECTOR_FUNCTION(loops_of_planes)(); }

}  // namespace superstep::kernels
#endif
