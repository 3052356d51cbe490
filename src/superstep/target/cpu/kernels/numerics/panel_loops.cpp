#include "superstep/target/cpu/kernels/numerics/panel_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "superstep/numerics/definition.h"
#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/numerics/panel_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/elementwise/philox-inl.h"
#include "superstep/target/cpu/kernels/numerics/narrowing-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// One rounding, on every instruction set.
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(f32_tag, std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
#else
  return hn::MulAdd(a, b, c);
#endif
}

// R rows by C vectors of sums, from (row, column) of the panel.
struct Corner {
  std::int64_t row, column;
};

// The words that the sums of a block are rounded by: four steps of each at a time.
template <std::size_t R, std::size_t C>
struct Drawn {
  Words words[R][C];
  std::uint32_t block = ~0u;

  HWY_INLINE void draw(const PanelRun& run, Corner at, std::uint32_t step) {
    if (step / 4 == block) return;
    block = step / 4;
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t c = 0; c < C; ++c) {
        const auto column =
            run.column + static_cast<std::uint32_t>(at.column) + static_cast<std::uint32_t>(c * lanes);
        const WordAddress address{
            .seed = run.key,
            .sample = block | std::uint64_t{run.node} << 32,
            .purpose = run.row + static_cast<std::uint32_t>(at.row) + static_cast<std::uint32_t>(r)};
        words[r][c] = philox_lanes(hn::Add(hn::Set(u32_tag, column), hn::Iota(u32_tag, 0)), address);
      }
  }
};

template <NarrowingKind kind, bool draws, std::size_t R, std::size_t C>
struct Sums {
  V sum[R][C];
  Drawn<draws ? R : 1, draws ? C : 1> drawn;

  HWY_INLINE float* place(const PanelRun& run, Corner at, std::size_t r, std::size_t c) {
    return run.sums + (at.row + static_cast<std::int64_t>(r)) * run.sums_pitch + at.column +
           static_cast<std::int64_t>(c * lanes);
  }
  HWY_INLINE void begin(const PanelRun& run, Corner at) {
    unrolled<R>([&](auto r) SUPERSTEP_INLINE_LAMBDA {
      unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA { sum[r][c] = load(place(run, at, r, c)); });
    });
  }
  HWY_INLINE void end(const PanelRun& run, Corner at) {
    unrolled<R>([&](auto r) SUPERSTEP_INLINE_LAMBDA {
      unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA { store(sum[r][c], place(run, at, r, c)); });
    });
  }
  HWY_INLINE void narrow(const PanelRun& run, Corner at, std::int64_t k, const NarrowingFacts& facts) {
    const auto step = static_cast<std::uint32_t>((run.first + k) / run.arithmetic->chunk);
    if constexpr (draws) drawn.draw(run, at, step);
    unrolled<R>([&](auto r) SUPERSTEP_INLINE_LAMBDA {
      unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA {
        VU word = hn::Zero(u32_tag);
        if constexpr (draws) word = drawn.words[r][c].w[step % 4];
        sum[r][c] = narrowed<kind>(sum[r][c], word, facts);
      });
    });
  }
};

template <NarrowingKind kind, bool draws>
struct InTurn {
  template <std::size_t R, std::size_t C>
  static void block(const PanelRun& run, Corner at, const NarrowingFacts& facts) {
    Sums<kind, draws, R, C> sums;
    sums.begin(run, at);
    const std::int64_t chunk = kind == NarrowingKind::none ? run.k : run.arithmetic->chunk;
    for (std::int64_t k = 0; k < run.k; k += chunk) {
      const float* a = run.a + at.row * run.a_pitch + k;
      const float* b = run.b + k * run.b_pitch + at.column;
      for (std::int64_t left = std::min(chunk, run.k - k); left > 0; --left, ++a, b += run.b_pitch) {
        V line[C];
        unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA { line[c] = load(b + c * lanes); });
        unrolled<R>([&](auto r) SUPERSTEP_INLINE_LAMBDA {
          const V factor = constant(a[static_cast<std::int64_t>(r) * run.a_pitch]);
          unrolled<C>([&](auto c) SUPERSTEP_INLINE_LAMBDA {
            sums.sum[r][c] = fused(factor, line[c], sums.sum[r][c]);
          });
        });
      }
      sums.narrow(run, at, k, facts);
    }
    sums.end(run, at);
  }
};

constexpr std::int64_t most_tree = 64;  // numerics::check()

// The sum of a chunk's products: neighbours are added, level after level, as a counter carries.
HWY_INLINE V tree_of(const float* a, const float* b, std::int64_t b_pitch, std::int64_t n,
                     std::int64_t chunk) {
  V level[7];  // of 1, 2, 4 ... 64 products
  for (std::int64_t i = 0; i < chunk; ++i) {
    V carry = i < n ? in_register(hn::Mul(constant(a[i]), load(b + i * b_pitch))) : hn::Zero(f32_tag);
    std::size_t depth = 0;
    for (std::int64_t bit = i; (bit & 1) != 0; bit >>= 1, ++depth) carry = hn::Add(level[depth], carry);
    level[depth] = carry;
  }
  std::size_t top = 0;
  for (std::int64_t size = chunk; size > 1; size >>= 1) ++top;
  return level[top];
}

template <NarrowingKind kind, bool draws>
struct Tree {
  template <std::size_t R, std::size_t C>
  static void block(const PanelRun& run, Corner at, const NarrowingFacts& facts) {
    Sums<kind, draws, R, C> sums;
    sums.begin(run, at);
    const std::int64_t chunk = std::min<std::int64_t>(run.arithmetic->chunk, most_tree);
    for (std::int64_t k = 0; k < run.k; k += chunk) {
      for (std::size_t r = 0; r < R; ++r)
        for (std::size_t c = 0; c < C; ++c) {
          const V products =
              tree_of(run.a + (at.row + static_cast<std::int64_t>(r)) * run.a_pitch + k,
                      run.b + k * run.b_pitch + at.column + static_cast<std::int64_t>(c * lanes), run.b_pitch,
                      std::min(chunk, run.k - k), chunk);
          sums.sum[r][c] = hn::Add(sums.sum[r][c], products);
        }
      sums.narrow(run, at, k, facts);
    }
    sums.end(run, at);
  }
};

constexpr std::int64_t most_aligned = 16;    // numerics::check()
constexpr std::int32_t no_exponent = -4096;  // of zeros: below every sum of two

// The exponents of leading places, as bits say them; subnormal numbers have that of the smallest normal ones.
HWY_INLINE VI exponents_of(V v) {
  const VI field =
      hn::BitCast(i32_tag, hn::And(hn::ShiftRight<23>(hn::BitCast(u32_tag, v)), hn::Set(u32_tag, 0xffu)));
  const VI exponent = hn::Sub(hn::Max(field, hn::Set(i32_tag, 1)), hn::Set(i32_tag, 127));
  const auto zero = hn::RebindMask(i32_tag, hn::Eq(v, hn::Zero(f32_tag)));
  return hn::IfThenElse(zero, hn::Set(i32_tag, no_exponent), exponent);
}

// 2^n of n that normal numbers have.
HWY_INLINE V power_of_two(VI n) {
  return hn::BitCast(f32_tag, hn::ShiftLeft<23>(hn::Add(n, hn::Set(i32_tag, 127))));
}

// A whole number as f32, cut off to 24 digits.
HWY_INLINE V cut_to_f32(VI n) {
  const VI size = hn::Abs(n);
  const V nearest = hn::ConvertTo(f32_tag, size);
  const VI above = hn::IfThenElseZero(hn::Gt(hn::ConvertTo(i32_tag, nearest), size), hn::Set(i32_tag, 1));
  const V cut = hn::BitCast(f32_tag, hn::Sub(hn::BitCast(i32_tag, nearest), above));
  return hn::CopySign(cut, hn::BitCast(f32_tag, n));
}

// One vector of sums after a chunk of `n` products. Products beneath the normal numbers of f32 are cut off as
// they must be: 2^-126 is less than the last place that is kept of anything.
HWY_INLINE V aligned_chunk(V sum, const float* a, const std::int32_t* a_exponents, const V* b,
                           const VI* b_exponents, std::int64_t n, int places) {
  VI largest = hn::Max(exponents_of(sum), hn::Set(i32_tag, numerics::lowest_aligned_exponent));
  for (std::int64_t i = 0; i < n; ++i)
    largest = hn::Max(largest, hn::Add(hn::Set(i32_tag, a_exponents[i]), b_exponents[i]));
  const VI unit = hn::Sub(largest, hn::Set(i32_tag, places));
  const V scale = power_of_two(hn::Neg(unit));
  VI total = hn::ConvertTo(i32_tag, hn::Mul(sum, scale));
  for (std::int64_t i = 0; i < n; ++i)
    total = hn::Add(total, hn::ConvertTo(i32_tag, hn::Mul(hn::Mul(constant(a[i]), b[i]), scale)));
  return hn::Mul(cut_to_f32(total), power_of_two(unit));
}

void aligned_panel(const PanelRun& run, const std::int32_t* a_exponents) {
  const int places = 23 + run.arithmetic->extra_bits;
  const std::int64_t chunk = std::min<std::int64_t>(run.arithmetic->chunk, most_aligned);
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (std::int64_t column = 0; column < run.columns; column += width)
    for (std::int64_t k = 0; k < run.k; k += chunk) {
      const std::int64_t n = std::min(chunk, run.k - k);
      V b[most_aligned];
      VI b_exponents[most_aligned];
      for (std::int64_t i = 0; i < n; ++i) {
        b[i] = load(run.b + (k + i) * run.b_pitch + column);
        b_exponents[i] = exponents_of(b[i]);
      }
      for (std::int64_t row = 0; row < run.rows; ++row) {
        float* const sum = run.sums + row * run.sums_pitch + column;
        store(aligned_chunk(load(sum), run.a + row * run.a_pitch + k, a_exponents + row * run.k + k, b,
                            b_exponents, n, places),
              sum);
      }
    }
}

template <class Way>
void panel_by(const PanelRun& run) {
  const NarrowingFacts facts(run.arithmetic->sums);
  constexpr auto width = static_cast<std::int64_t>(lanes);
  const auto rows = [&]<std::size_t C>(std::integral_constant<std::size_t, C>, std::int64_t column) {
    std::int64_t row = 0;
    for (; row + 4 <= run.rows; row += 4) Way::template block<4, C>(run, {row, column}, facts);
    for (; row < run.rows; ++row) Way::template block<1, C>(run, {row, column}, facts);
  };
  std::int64_t column = 0;
  for (; column + 2 * width <= run.columns; column += 2 * width)
    rows(std::integral_constant<std::size_t, 2>(), column);
  for (; column < run.columns; column += width) rows(std::integral_constant<std::size_t, 1>(), column);
}

template <template <NarrowingKind, bool> class Way>
void panel_in(const PanelRun& run) {
  switch (kind_of(run.arithmetic->sums)) {
    case NarrowingKind::none: return panel_by<Way<NarrowingKind::none, false>>(run);
    case NarrowingKind::f16_nearest: return panel_by<Way<NarrowingKind::f16_nearest, false>>(run);
    case NarrowingKind::bf16_nearest: return panel_by<Way<NarrowingKind::bf16_nearest, false>>(run);
    case NarrowingKind::any: break;
  }
  if (run.arithmetic->sums.rounding == numerics::Rounding::stochastic)
    return panel_by<Way<NarrowingKind::any, true>>(run);
  panel_by<Way<NarrowingKind::any, false>>(run);
}

void panel(const PanelRun& run, const std::int32_t* a_exponents) {
  switch (run.arithmetic->order) {
    case numerics::Order::in_turn: return panel_in<InTurn>(run);
    case numerics::Order::tree: return panel_in<Tree>(run);
    case numerics::Order::aligned: return aligned_panel(run, a_exponents);
  }
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(panel);

namespace {

// The largest exponent of the matrix, as bits have it: 255 of what is not finite.
int largest_field(const float* values, std::int64_t rows, std::int64_t columns, std::int64_t pitch) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i * pitch + j]) & 0x7f800000u);
  return static_cast<int>(largest >> 23);
}

// Whether aligned sums stay within f32 on the way: no product of the panels, nor the sums, reach 2^120.
bool stays_within(const PanelRun& run) {
  const int a = largest_field(run.a, run.rows, run.k, run.a_pitch);
  const int b = largest_field(run.b, run.k, run.columns, run.b_pitch);
  const int sums = largest_field(run.sums, run.rows, run.columns, run.sums_pitch);
  return a - 127 + b - 127 < 120 && sums - 127 < 120 && a < 255 && b < 255;
}

void panel_by_definition(const PanelRun& run) {
  std::vector<float> column(static_cast<std::size_t>(run.k));
  for (std::int64_t j = 0; j < run.columns; ++j) {
    for (std::int64_t k = 0; k < run.k; ++k) column[static_cast<std::size_t>(k)] = run.b[k * run.b_pitch + j];
    for (std::int64_t i = 0; i < run.rows; ++i) {
      float& sum = run.sums[i * run.sums_pitch + j];
      sum =
          numerics::summed(sum, {run.a + i * run.a_pitch, column.size()}, column, *run.arithmetic, run.first,
                           {.column = run.column + static_cast<std::uint32_t>(j),
                            .row = run.row + static_cast<std::uint32_t>(i),
                            .step = 0,
                            .node = run.node,
                            .key = run.key});
    }
  }
}

// Exponents of a row-major copy of A.
std::vector<std::int32_t> exponents_of_rows(const PanelRun& run) {
  std::vector<std::int32_t> exponents(static_cast<std::size_t>(run.rows * run.k));
  for (std::int64_t i = 0; i < run.rows; ++i)
    for (std::int64_t k = 0; k < run.k; ++k) {
      const auto bits = std::bit_cast<std::uint32_t>(run.a[i * run.a_pitch + k]);
      const auto field = static_cast<std::int32_t>((bits >> 23) & 0xffu);
      exponents[static_cast<std::size_t>(i * run.k + k)] =
          (bits & 0x7fffffffu) == 0 ? -4096 : std::max(field, std::int32_t{1}) - 127;
    }
  return exponents;
}

void panel_of_any(const PanelRun& run) {
  const auto loop = SUPERSTEP_VECTOR_FUNCTION(panel);
  if (run.arithmetic->order != numerics::Order::aligned) return loop(run, nullptr);
  if (!stays_within(run)) return panel_by_definition(run);
  loop(run, exponents_of_rows(run).data());
}

}  // namespace

PanelLoop* panel_loop() { return &panel_of_any; }

}  // namespace superstep::kernels
#endif
