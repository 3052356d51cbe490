#include "superstep/target/cpu/kernels/product/portable_product.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/portable_product.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

struct Operands {
  const ProductShape& shape;
  const std::byte *a, *b;
  float* c;
  std::uint64_t count;
  const std::uint64_t *a_offsets, *b_offsets;
};

// One block of C in registers: MV vectors of rows by NB columns; the last vector holds `tail` rows when it is
// not `whole`.
template <std::size_t MV, std::size_t NB, bool whole>
struct Block {
  V sum[MV][NB];
  std::size_t tail;

  std::size_t count(std::size_t i) const { return whole || i + 1 < MV ? lanes : tail; }
  template <class T>
  HWY_INLINE void add_product(const ProductShape& s, const T* a, const T* b);
  HWY_INLINE void add_pairs(const ProductShape& s, const bf16* a, const bf16* b);
};

template <std::size_t MV, std::size_t NB, bool whole>
template <class T>
HWY_INLINE void Block<MV, NB, whole>::add_product(const ProductShape& s, const T* a, const T* b) {
  for (std::int64_t k = 0; k < s.k; ++k, a += s.a_stride, b += s.b_k_stride) {
    V row[MV];
    unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA { row[i] = load_first(a + i * lanes, count(i)); });
    unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
      const V value = constant(static_cast<float>(b[static_cast<std::int64_t>(j) * s.b_n_stride]));
      unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sum[i][j] = hn::MulAdd(row[i], value, sum[i][j]); });
    });
  }
}

// A in pairs: element (m, k) at (k / 2) * 2 * a_stride + 2 m + k mod 2. One vector of rows.
template <std::size_t MV, std::size_t NB, bool whole>
HWY_INLINE void Block<MV, NB, whole>::add_pairs(const ProductShape& s, const bf16* a, const bf16* b) {
  for (std::int64_t k = 0; k < s.k; ++k) {
    float row[lanes] = {};
    const bf16* pairs = a + (k / 2) * 2 * s.a_stride + k % 2;
    for (std::size_t i = 0; i < count(0); ++i) row[i] = static_cast<float>(pairs[2 * i]);
    unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
      const V value = constant(static_cast<float>(b[static_cast<std::int64_t>(j) * s.b_n_stride + k]));
      sum[0][j] = hn::MulAdd(load(row), value, sum[0][j]);
    });
  }
}

template <std::size_t MV, std::size_t NB, bool whole, class T, bool pairs>
void product_block(const Operands& o, std::size_t tail) {
  Block<MV, NB, whole> block;
  block.tail = tail;
  const auto place = [&](std::size_t i, std::size_t j) SUPERSTEP_INLINE_LAMBDA {
    return o.c + static_cast<std::int64_t>(j) * o.shape.c_stride + static_cast<std::int64_t>(i * lanes);
  };
  unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    unrolled<NB>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
      block.sum[i][j] = o.shape.accumulate ? load_first(place(i, j), block.count(i)) : hn::Zero(f32_tag);
    });
  });
  for (std::uint64_t i = 0; i < o.count; ++i) {
    const T* a = reinterpret_cast<const T*>(o.a + o.a_offsets[i]);
    const T* b = reinterpret_cast<const T*>(o.b + o.b_offsets[i]);
    if constexpr (pairs)
      block.add_pairs(o.shape, a, b);
    else
      block.add_product(o.shape, a, b);
  }
  unrolled<MV>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    unrolled<NB>([&](auto j)
                     SUPERSTEP_INLINE_LAMBDA { store_first(block.sum[i][j], place(i, j), block.count(i)); });
  });
}

template <std::size_t MV, bool whole, class T, bool pairs>
void product_columns(Operands o, std::size_t tail) {
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  std::int64_t left = o.shape.n;
  const auto advance = [&](std::int64_t columns) {
    o.b += columns * o.shape.b_n_stride * element;
    o.c += columns * o.shape.c_stride;
    left -= columns;
  };
  for (; left >= 6; advance(6)) product_block<MV, 6, whole, T, pairs>(o, tail);
  for (; left >= 3; advance(3)) product_block<MV, 3, whole, T, pairs>(o, tail);
  for (; left >= 1; advance(1)) product_block<MV, 1, whole, T, pairs>(o, tail);
}

template <class T, bool pairs>
void product_rows(Operands o) {
  constexpr std::int64_t width = lanes, element = pairs ? 2 * sizeof(T) : sizeof(T);
  std::int64_t left = o.shape.m;
  const auto advance = [&](std::int64_t rows) {
    o.a += rows * element;
    o.c += rows;
    left -= rows;
  };
  if constexpr (!pairs) {
    for (; left >= 4 * width; advance(4 * width)) product_columns<4, true, T, pairs>(o, lanes);
    for (; left >= 2 * width; advance(2 * width)) product_columns<2, true, T, pairs>(o, lanes);
  }
  for (; left >= width; advance(width)) product_columns<1, true, T, pairs>(o, lanes);
  if (left > 0) product_columns<1, false, T, pairs>(o, static_cast<std::size_t>(left));
}

void batch_reduce(const ProductShape& shape, const void* a, const void* b, float* c, std::uint64_t count,
                  const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) {
  const Operands o{
      shape,    static_cast<const std::byte*>(a), static_cast<const std::byte*>(b), c, count, a_offsets,
      b_offsets};
  if (shape.type == ElementType::f32) return product_rows<float, false>(o);
  if (shape.pairs) return product_rows<bf16, true>(o);
  product_rows<bf16, false>(o);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(batch_reduce);

PortableProduct* portable_product() { return SUPERSTEP_VECTOR_FUNCTION(batch_reduce); }

}  // namespace superstep::kernels
#endif
