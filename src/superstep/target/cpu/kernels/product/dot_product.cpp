#include "superstep/target/cpu/kernels/product/dot_product.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/dot_product.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

struct DotOperands {
  const ProductShape& shape;
  const std::byte *a, *b;
  float* c;
  std::uint64_t count;
  const std::uint64_t *a_offsets, *b_offsets;
};

// The sums of the lanes of four vectors, into four floats.
HWY_INLINE void sum_lanes_of_four(V a, V b, V c, V d, float* sums) {
#if HWY_TARGET == HWY_SCALAR
  sums[0] = hn::GetLane(a), sums[1] = hn::GetLane(b), sums[2] = hn::GetLane(c), sums[3] = hn::GetLane(d);
#else
  // Two rounds of interleaving leave [a b c d] in each 128-bit block; then the blocks are added.
  const hn::Repartition<double, F> wide;
  const auto ab =
      hn::BitCast(wide, hn::Add(hn::InterleaveLower(f32_tag, a, b), hn::InterleaveUpper(f32_tag, a, b)));
  const auto cd =
      hn::BitCast(wide, hn::Add(hn::InterleaveLower(f32_tag, c, d), hn::InterleaveUpper(f32_tag, c, d)));
  const V all = hn::Add(hn::BitCast(f32_tag, hn::InterleaveLower(wide, ab, cd)),
                        hn::BitCast(f32_tag, hn::InterleaveUpper(wide, ab, cd)));
#if HWY_MAX_BYTES == 16
  hn::StoreU(all, f32_tag, sums);  // the one block there is
#else
  const hn::Half<F> half;
  const auto two = hn::Add(hn::LowerHalf(half, all), hn::UpperHalf(half, all));
#if HWY_TARGET == HWY_AVX2
  hn::StoreU(two, half, sums);
#else
  const hn::Half<decltype(half)> quarter;
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)), quarter, sums);
#endif
#endif
#endif
}

// `ahead`: what will be read next is fetched meanwhile.
template <std::size_t M, std::size_t NB, bool ahead, class T>
HWY_INLINE void add_dots(const ProductShape& s, const T* a, const T* b, std::size_t n, V (&sum)[M][NB]) {
  V column[NB];
  unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
    column[j] = load_first(b + static_cast<std::int64_t>(j) * s.b_n_stride, n);
  });
  unrolled<M>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    const T* from = a + static_cast<std::int64_t>(i) * s.a_stride;
    if (ahead) __builtin_prefetch(from + s.a_ahead, 0, 2);
    const V row = in_register(load_first(from, n));
    unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA { sum[i][j] = hn::MulAdd(row, column[j], sum[i][j]); });
  });
}

template <std::size_t M, std::size_t NB>
HWY_INLINE void finish_dots(const DotOperands& o, const V (&sum)[M][NB]) {
  constexpr std::size_t total = M * NB, padded = (total + 3) / 4 * 4;
  alignas(64) float sums[padded];
  unrolled<padded / 4>([&](auto q) SUPERSTEP_INLINE_LAMBDA {
    V four[4];
    unrolled<4>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      constexpr std::size_t at = 4 * decltype(q)::value + decltype(i)::value;
      four[i] = at < total ? sum[at % M][at / M % NB] : hn::Zero(f32_tag);
    });
    sum_lanes_of_four(four[0], four[1], four[2], four[3], sums + 4 * q);
  });
  for (std::size_t j = 0; j < NB; ++j) {
    float* c = o.c + static_cast<std::int64_t>(j) * o.shape.c_stride;
    for (std::size_t i = 0; i < M; ++i) c[i] = sums[j * M + i] + (o.shape.accumulate ? c[i] : 0.0f);
  }
}

// `whole`: k is a multiple of the vector's length.
template <std::size_t M, std::size_t NB, class T, bool whole, bool ahead>
void dot_block(const DotOperands& o) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  V sum[M][NB];
  unrolled<M>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA { sum[i][j] = hn::Zero(f32_tag); });
  });
  const std::int64_t full = o.shape.k / width * width;
  const auto rest = static_cast<std::size_t>(o.shape.k - full);
  for (std::uint64_t i = 0; i < o.count; ++i) {
    const T* a = reinterpret_cast<const T*>(o.a + o.a_offsets[i]);
    const T* b = reinterpret_cast<const T*>(o.b + o.b_offsets[i]);
    for (std::int64_t k = 0; k < full; k += width) add_dots<M, NB, ahead>(o.shape, a + k, b + k, lanes, sum);
    if (!whole) add_dots<M, NB, ahead>(o.shape, a + full, b + full, rest, sum);
  }
  finish_dots<M, NB>(o, sum);
}

// As many columns at a time as leave the sums in registers.
template <std::size_t M, class T, bool whole, bool ahead>
void dot_columns_of(const ProductShape& shape, const void* a, const void* b, float* c, std::uint64_t count,
                    const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) {
  constexpr std::size_t registers = lanes == 16 ? 24 : 12;
  constexpr std::size_t columns = M == 1 ? 8 : registers / M;
  DotOperands o{
      shape,    static_cast<const std::byte*>(a), static_cast<const std::byte*>(b), c, count, a_offsets,
      b_offsets};
  std::int64_t left = shape.n;
  const auto advance = [&](std::int64_t n) {
    o.b += n * shape.b_n_stride * static_cast<std::int64_t>(sizeof(T));
    o.c += n * shape.c_stride;
    left -= n;
  };
  constexpr auto step = static_cast<std::int64_t>(columns);
  for (; left >= step; advance(step)) dot_block<M, columns, T, whole, ahead>(o);
  for (; left > 0; advance(1)) dot_block<M, 1, T, whole, false>(o);
}

template <std::size_t M, class T>
void dot_columns(const ProductShape& shape, const void* a, const void* b, float* c, std::uint64_t count,
                 const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) {
  const bool whole = shape.k % static_cast<std::int64_t>(lanes) == 0;
  DotProduct* const loop =
      shape.a_ahead > 0 ? (whole ? dot_columns_of<M, T, true, true> : dot_columns_of<M, T, false, true>)
                        : (whole ? dot_columns_of<M, T, true, false> : dot_columns_of<M, T, false, false>);
  loop(shape, a, b, c, count, a_offsets, b_offsets);
}

template <class T>
DotProduct* dot_of_block(std::int64_t m) {
  static constexpr DotProduct* functions[] = {dot_columns<1, T>, dot_columns<2, T>, dot_columns<3, T>,
                                              dot_columns<4, T>, dot_columns<5, T>, dot_columns<6, T>,
                                              dot_columns<7, T>, dot_columns<8, T>};
  return functions[m - 1];
}

// Blocks of rows of nearly one size, each over the whole inner dimension.
template <class T>
void dot_blocks(const ProductShape& shape, const void* a, const void* b, float* c, std::uint64_t count,
                const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) {
  const std::int64_t blocks = (shape.m + dot_rows_limit - 1) / dot_rows_limit;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t first = i * shape.m / blocks, rows = (i + 1) * shape.m / blocks - first;
    dot_of_block<T>(rows)(shape, static_cast<const T*>(a) + first * shape.a_stride, b, c + first, count,
                          a_offsets, b_offsets);
  }
}

template <class T>
DotProduct* dot_of(std::int64_t m) {
  return m <= dot_rows_limit ? dot_of_block<T>(m) : dot_blocks<T>;
}

DotProduct* dot_function(std::int64_t m, ElementType type) {
  return type == ElementType::bf16 ? dot_of<bf16>(m) : dot_of<float>(m);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(dot_function);

DotProduct* dot_product(std::int64_t m, ElementType type) {
  return SUPERSTEP_VECTOR_FUNCTION(dot_function)(m, type);
}

}  // namespace superstep::kernels
#endif
