#include "superstep/target/cpu/kernels/fourier/fourier_loops.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/fourier/fourier_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/transpose-inl.h"
#include "superstep/target/cpu/kernels/fourier/fourier_radix-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto fourier_lanes = static_cast<std::int64_t>(lanes);

// ---- stages -----------------------------------------------------------------------------------------------

// `Last`: a single block, whose factors are all 1; its results are scaled.
template <int R, bool Last>
HWY_INLINE void fourier_butterfly(const FourierPass& f, const float* factors, std::int64_t x, std::int64_t y,
                                  std::int64_t y_step, std::size_t n) {
  const std::int64_t x_step = f.stage->blocks * f.stage->run * f.x.step;
  VectorPair a[R];
  unrolled<R>([&](auto k) SUPERSTEP_INLINE_LAMBDA {
    a[k].re = load_first(f.x.re + x + static_cast<std::int64_t>(k) * x_step, n);
    a[k].im = f.x.im ? load_first(f.x.im + x + static_cast<std::int64_t>(k) * x_step, n) : hn::Zero(f32_tag);
  });
  transform_radix<R>(a);
  unrolled<R>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
    VectorPair b = a[j];
    if constexpr (Last)
      b = {hn::Mul(b.re, constant(f.scale)), hn::Mul(b.im, constant(f.scale))};
    else if constexpr (j > 0)
      b = times(b, constant(factors[2 * (j - 1)]), constant(factors[2 * (j - 1) + 1]));
    store_first(b.re, f.y.re + y + static_cast<std::int64_t>(j) * y_step, n);
    store_first(b.im, f.y.im + y + static_cast<std::int64_t>(j) * y_step, n);
  });
}

// Rows that follow each other without a gap in x and y are one long row.
template <int R, bool Last>
void fourier_stage(const FourierPass& f) {
  const FourierStage& s = *f.stage;
  const bool joined = f.x.step == f.lines && f.y.step == f.lines;
  const std::int64_t rows = joined ? 1 : s.run, length = joined ? s.run * f.lines : f.lines;
  const std::int64_t y_step = s.run * f.y.step;
  for (std::int64_t p = 0; p < s.blocks; ++p) {
    const float* factors = Last ? nullptr : s.factors.data() + p * 2 * (R - 1);
    for (std::int64_t q = 0; q < rows; ++q) {
      const std::int64_t x = (p * s.run + q) * f.x.step, y = (R * p * s.run + q) * f.y.step;
      std::int64_t i = 0;
      for (; i + fourier_lanes <= length; i += fourier_lanes)
        fourier_butterfly<R, Last>(f, factors, x + i, y + i, y_step, lanes);
      if (i < length)
        fourier_butterfly<R, Last>(f, factors, x + i, y + i, y_step, static_cast<std::size_t>(length - i));
    }
  }
}

template <int R>
void fourier_stage_of(const FourierPass& f) {
  f.stage->blocks == 1 ? fourier_stage<R, true>(f) : fourier_stage<R, false>(f);
}

void fourier_pass(const FourierPass& f) {
  switch (f.stage->radix) {
    case 2: return fourier_stage_of<2>(f);
    case 3: return fourier_stage_of<3>(f);
    case 4: return fourier_stage_of<4>(f);
    case 5: return fourier_stage_of<5>(f);
    case 7: return fourier_stage_of<7>(f);
    case 8: return fourier_stage_of<8>(f);
    case 11: return fourier_stage_of<11>(f);
    default: return fourier_stage_of<13>(f);
  }
}

void fourier_multiply(const FourierProduct& f) {
  for (std::int64_t row = 0; row < f.rows; ++row) {
    const V re = constant(f.numbers[2 * row]), im = constant(f.numbers[2 * row + 1]);
    for (std::int64_t i = 0; i < f.lines; i += fourier_lanes) {
      const auto n = static_cast<std::size_t>(std::min(fourier_lanes, f.lines - i));
      const std::int64_t x = row * f.x.step + i, y = row * f.y.step + i;
      const V x_im = f.x.im ? load_first(f.x.im + x, n) : hn::Zero(f32_tag);
      const VectorPair b = times({load_first(f.x.re + x, n), x_im}, re, im);
      store_first(b.re, f.y.re + y, n);
      store_first(b.im, f.y.im + y, n);
    }
  }
}

// ---- lines and rows ---------------------------------------------------------------------------------------

// Lines side by side: a row is one piece of memory.
void gather_neighbours(const float* from, std::int64_t element, const FourierTransfer& t, float* to) {
  for (std::int64_t row = 0; row < t.count; ++row)
    for (std::int64_t i = 0; i < t.lines; i += fourier_lanes) {
      const auto n = static_cast<std::size_t>(std::min(fourier_lanes, t.lines - i));
      store_first(load_first(from + row * element + i, n), to + row * t.rows.step + i, n);
    }
}
void scatter_neighbours(const float* from, const FourierTransfer& t, float* to, std::int64_t element) {
  for (std::int64_t row = 0; row < t.count; ++row)
    for (std::int64_t i = 0; i < t.lines; i += fourier_lanes) {
      const auto n = static_cast<std::size_t>(std::min(fourier_lanes, t.lines - i));
      store_first(load_first(from + row * t.rows.step + i, n), to + row * element + i, n);
    }
}

void gather_part(const float* from, const FourierTransfer& t, float* to) {
  const FourierLines& tensor = t.tensor;
  if (tensor.line == 1) return gather_neighbours(from, tensor.element, t, to);
  if (tensor.element == 1) return transpose(from, tensor.line, to, t.rows.step, t.lines, t.count);
  for (std::int64_t row = 0; row < t.count; ++row)
    for (std::int64_t i = 0; i < t.lines; ++i)
      to[row * t.rows.step + i] = from[row * tensor.element + i * tensor.line];
}
void scatter_part(const float* from, const FourierTransfer& t, float* to) {
  const FourierLines& tensor = t.tensor;
  if (tensor.line == 1) return scatter_neighbours(from, t, to, tensor.element);
  if (tensor.element == 1) return transpose(from, t.rows.step, to, tensor.line, t.count, t.lines);
  for (std::int64_t row = 0; row < t.count; ++row)
    for (std::int64_t i = 0; i < t.lines; ++i)
      to[row * tensor.element + i * tensor.line] = from[row * t.rows.step + i];
}

// Pairs of real and imaginary part, line by line one piece of memory: `lanes` lines at a time.
bool gather_pairs(const FourierTransfer& t) {
  if (t.tensor.line != 2 || t.lines != fourier_lanes) return false;
  for (std::int64_t row = 0; row < t.count; ++row) {
    V re, im;
    hn::LoadInterleaved2(f32_tag, t.tensor.re + row * t.tensor.element, re, im);
    store(re, t.rows.re + row * t.rows.step);
    store(im, t.rows.im + row * t.rows.step);
  }
  return true;
}
bool scatter_pairs(const FourierTransfer& t) {
  if (t.tensor.line != 2 || t.lines != fourier_lanes) return false;
  for (std::int64_t row = 0; row < t.count; ++row)
    hn::StoreInterleaved2(load(t.rows.re + row * t.rows.step), load(t.rows.im + row * t.rows.step), f32_tag,
                          t.tensor.re + row * t.tensor.element);
  return true;
}

// Lines of pairs, each one piece of memory, into rows of real parts that take turns with rows of imaginary
// parts.
bool rows_take_turns(const FourierTransfer& t) {
  return t.tensor.element == 2 && t.rows.step == 2 * t.lines && t.rows.im == t.rows.re + t.lines;
}

void fourier_gather(const FourierTransfer& t) {
  if (t.tensor.interleaved && gather_pairs(t)) return;
  if (t.tensor.interleaved && rows_take_turns(t))
    return transpose(t.tensor.re, t.tensor.line, t.rows.re, t.lines, t.lines, 2 * t.count);
  gather_part(t.tensor.re, t, t.rows.re);
  if (t.tensor.im) gather_part(t.tensor.im, t, t.rows.im);
}
void fourier_scatter(const FourierTransfer& t) {
  if (t.tensor.interleaved && scatter_pairs(t)) return;
  if (t.tensor.interleaved && rows_take_turns(t))
    return transpose(t.rows.re, t.lines, t.tensor.re, t.tensor.line, 2 * t.count, t.lines);
  scatter_part(t.rows.re, t, t.tensor.re);
  if (t.tensor.im) scatter_part(t.rows.im, t, t.tensor.im);
}

const FourierLoops& all_fourier_loops() {
  static constexpr FourierLoops loops{fourier_lanes, fourier_pass, fourier_multiply, fourier_gather,
                                      fourier_scatter};
  return loops;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(all_fourier_loops);

const FourierLoops& fourier_loops() { return SUPERSTEP_VECTOR_FUNCTION(all_fourier_loops)(); }

}  // namespace superstep::kernels
#endif
