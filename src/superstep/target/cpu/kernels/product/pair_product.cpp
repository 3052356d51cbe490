#include "superstep/target/cpu/kernels/product/pair_product.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/pair_product.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// A block of C: its operands and how they are walked. Strides of A in pairs, of B in bytes.
struct Walk {
  const std::uint32_t* a;
  const std::byte* b;
  float* c;
  std::int64_t pairs, a_stride, b_pair_stride, b_column_stride, c_stride;
  std::uint64_t count;
  const std::uint64_t *a_offsets, *b_offsets;
  bool accumulate;
};

// The halves of each lane: the even element of a pair is the lower one.
HWY_INLINE V even_half(VU pairs) { return hn::BitCast(f32_tag, hn::ShiftLeft<16>(pairs)); }
HWY_INLINE V odd_half(VU pairs) { return hn::BitCast(f32_tag, hn::And(pairs, hn::Set(u32_tag, 0xffff0000))); }

// Vectors of pairs, ready to be multiplied.
template <bool native>
struct Pairs;
template <>
struct Pairs<false> {
  V even, odd;
  explicit HWY_INLINE Pairs(VU bits) : even(even_half(bits)), odd(odd_half(bits)) {}
  Pairs() = default;
  HWY_INLINE V times(const Pairs& other, V sum) const {
    return hn::MulAdd(odd, other.odd, hn::MulAdd(even, other.even, sum));
  }
};
#if HWY_TARGET == HWY_AVX3
template <>
struct Pairs<true> {
  V bits;
  explicit HWY_INLINE Pairs(VU from) : bits(hn::BitCast(f32_tag, from)) {}
  Pairs() = default;
  HWY_INLINE V times(const Pairs& other, V sum) const {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(bits.raw), "v"(other.bits.raw));
    return sum;
  }
};
#endif

HWY_INLINE VU load_pairs(const std::uint32_t* p, std::size_t n) {
  return hn::BitCast(u32_tag, load_first(reinterpret_cast<const float*>(p), n));
}

HWY_INLINE VU broadcast_pair(const std::byte* p) {
  std::uint32_t pair;
  std::memcpy(&pair, p, sizeof pair);
  return hn::Set(u32_tag, pair);
}

// MV vectors of rows by NB columns in registers; the last vector holds `tail` rows.
template <bool native, std::size_t MV, std::size_t NB>
HWY_INLINE void product_block(const Walk& w, std::size_t tail) {
  const auto rows = [&](std::size_t i) SUPERSTEP_INLINE_LAMBDA { return i + 1 < MV ? lanes : tail; };
  const auto place = [&](std::size_t i, std::size_t j) SUPERSTEP_INLINE_LAMBDA {
    return w.c + static_cast<std::int64_t>(j) * w.c_stride + static_cast<std::int64_t>(i * lanes);
  };
  V sum[MV][NB];
  unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
      sum[i][j] = w.accumulate ? load_first(place(i, j), rows(i)) : hn::Zero(f32_tag);
    });
  });
  for (std::uint64_t number = 0; number < w.count; ++number) {
    const auto* a =
        reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const std::byte*>(w.a) + w.a_offsets[number]);
    const std::byte* b = w.b + w.b_offsets[number];
    for (std::int64_t pair = 0; pair < w.pairs; ++pair, a += w.a_stride, b += w.b_pair_stride) {
      Pairs<native> row[MV];
      unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
        row[i] = Pairs<native>(load_pairs(a + i * lanes, rows(i)));
      });
      unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
        const Pairs<native> value(broadcast_pair(b + static_cast<std::int64_t>(j) * w.b_column_stride));
        unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sum[i][j] = row[i].times(value, sum[i][j]); });
      });
    }
  }
  unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA { store_first(sum[i][j], place(i, j), rows(i)); });
  });
}

template <bool native, std::size_t MV, std::size_t NB>
void product_columns(Walk w, std::int64_t columns, std::size_t tail) {
  for (; columns >= static_cast<std::int64_t>(NB); columns -= NB) {
    product_block<native, MV, NB>(w, tail);
    w.b += static_cast<std::int64_t>(NB) * w.b_column_stride;
    w.c += static_cast<std::int64_t>(NB) * w.c_stride;
  }
  if constexpr (NB > 1)
    if (columns > 0) product_columns<native, MV, NB == 6 ? 4 : NB / 2>(w, columns, tail);
}

template <bool native, std::size_t MV>
void product_rows(Walk w, std::int64_t rows, std::int64_t columns) {
  constexpr auto block = static_cast<std::int64_t>(MV * lanes);
  for (; rows >= block; rows -= block, w.a += block, w.c += block)
    product_columns<native, MV, 6>(w, columns, lanes);
  if constexpr (MV > 1) {
    if (rows > 0) product_rows<native, MV / 2>(w, rows, columns);
  } else {
    if (rows > 0) product_columns<native, 1, 6>(w, columns, static_cast<std::size_t>(rows));
  }
}

template <bool native>
void product_of_pairs(const ProductShape& s, const void* a, const void* b, float* c, std::uint64_t count,
                      const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) {
  constexpr std::int64_t pair = 4, half = 2;  // bytes
  const Walk w{.a = static_cast<const std::uint32_t*>(a),
               .b = static_cast<const std::byte*>(b),
               .c = c,
               .pairs = s.k / 2,
               .a_stride = s.a_stride,
               .b_pair_stride = s.b_pairs ? s.b_k_stride * pair : pair,
               .b_column_stride = s.b_pairs ? s.b_n_stride * pair : s.b_n_stride * half,
               .c_stride = s.c_stride,
               .count = count,
               .a_offsets = a_offsets,
               .b_offsets = b_offsets,
               .accumulate = s.accumulate};
  // Halves apart take twice the registers.
  product_rows<native, native ? 4 : 2>(w, s.m, s.n);
}

PortableProduct* choose_pair_product(bool native) {
#if HWY_TARGET == HWY_AVX3
  if (native) return product_of_pairs<true>;
#endif
  static_cast<void>(native);
  return product_of_pairs<false>;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(choose_pair_product);

PortableProduct* pair_product() {
  return (*SUPERSTEP_VECTOR_FUNCTION(choose_pair_product))(instruction_set() >= InstructionSet::avx512_bf16);
}

}  // namespace superstep::kernels
#endif
