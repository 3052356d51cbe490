#include "superstep/target/cpu/kernels/portable_product.h"

#include "superstep/target/cpu/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/portable_product.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// One block of C in registers: MV vectors of rows by NB columns.
struct Operands {
  const ProductShape& shape;
  const std::byte *a, *b;
  float* c;
  std::uint64_t count;
  const std::uint64_t *a_offsets, *b_offsets;
  std::size_t tail;  // elements in the last vector of rows
};

template <std::size_t MV, std::size_t NB, class T>
HWY_INLINE void add_product(const Operands& o, const T* a, const T* b, V (&sum)[MV][NB]) {
  const ProductShape& s = o.shape;
  for (std::int64_t k = 0; k < s.k; ++k, a += s.a_stride, b += s.b_k_stride) {
    V row[MV];
    for (std::size_t i = 0; i + 1 < MV; ++i) row[i] = load(a + i * lanes);
    row[MV - 1] = load_first(a + (MV - 1) * lanes, o.tail);
    for (std::size_t j = 0; j < NB; ++j) {
      const V value = constant(static_cast<float>(b[static_cast<std::int64_t>(j) * s.b_n_stride]));
      for (std::size_t i = 0; i < MV; ++i) sum[i][j] = hn::MulAdd(row[i], value, sum[i][j]);
    }
  }
}

// A in pairs: element (m, k) at (k / 2) * 2 * a_stride + 2 m + k mod 2.
template <std::size_t NB>
HWY_INLINE void add_product_of_pairs(const Operands& o, const bf16* a, const bf16* b, V (&sum)[1][NB]) {
  const ProductShape& s = o.shape;
  for (std::int64_t k = 0; k < s.k; ++k) {
    float row[lanes] = {};
    const bf16* pairs = a + (k / 2) * 2 * s.a_stride + k % 2;
    for (std::size_t i = 0; i < o.tail; ++i) row[i] = static_cast<float>(pairs[2 * i]);
    const V value = load(row);
    for (std::size_t j = 0; j < NB; ++j)
      sum[0][j] = hn::MulAdd(
          value, constant(static_cast<float>(b[static_cast<std::int64_t>(j) * s.b_n_stride + k])), sum[0][j]);
  }
}

template <std::size_t MV, std::size_t NB, class T, bool pairs>
void product_block(const Operands& o) {
  V sum[MV][NB];
  for (std::size_t i = 0; i < MV; ++i)
    for (std::size_t j = 0; j < NB; ++j) {
      const float* c =
          o.c + static_cast<std::int64_t>(j) * o.shape.c_stride + static_cast<std::int64_t>(i * lanes);
      sum[i][j] = o.shape.accumulate ? load_first(c, i + 1 == MV ? o.tail : lanes) : hn::Zero(f32_tag);
    }
  for (std::uint64_t i = 0; i < o.count; ++i) {
    const T* a = reinterpret_cast<const T*>(o.a + o.a_offsets[i]);
    const T* b = reinterpret_cast<const T*>(o.b + o.b_offsets[i]);
    if constexpr (pairs)
      add_product_of_pairs<NB>(o, a, b, sum);
    else
      add_product<MV, NB>(o, a, b, sum);
  }
  for (std::size_t i = 0; i < MV; ++i)
    for (std::size_t j = 0; j < NB; ++j)
      store_first(
          sum[i][j],
          o.c + static_cast<std::int64_t>(j) * o.shape.c_stride + static_cast<std::int64_t>(i * lanes),
          i + 1 == MV ? o.tail : lanes);
}

template <std::size_t MV, class T, bool pairs>
void product_columns(Operands o) {
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  std::int64_t left = o.shape.n;
  const auto advance = [&](std::int64_t columns) {
    o.b += columns * o.shape.b_n_stride * element;
    o.c += columns * o.shape.c_stride;
    left -= columns;
  };
  for (; left >= 6; advance(6)) product_block<MV, 6, T, pairs>(o);
  for (; left >= 3; advance(3)) product_block<MV, 3, T, pairs>(o);
  for (; left >= 1; advance(1)) product_block<MV, 1, T, pairs>(o);
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
  o.tail = lanes;
  if constexpr (!pairs)
    for (; left >= 4 * width; advance(4 * width)) product_columns<4, T, pairs>(o);
  for (; left >= width; advance(width)) product_columns<1, T, pairs>(o);
  o.tail = static_cast<std::size_t>(left);
  if (left > 0) product_columns<1, T, pairs>(o);
}

void batch_reduce(const ProductShape& shape, const void* a, const void* b, float* c, std::uint64_t count,
                  const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) {
  const Operands o{shape,
                   static_cast<const std::byte*>(a),
                   static_cast<const std::byte*>(b),
                   c,
                   count,
                   a_offsets,
                   b_offsets,
                   lanes};
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
