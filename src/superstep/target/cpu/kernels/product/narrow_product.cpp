#include "superstep/target/cpu/kernels/product/narrow_product.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/narrow_product.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

using N = hn::FixedTag<float, 8>;
using VN = hn::Vec<N>;
constexpr N eight;
constexpr std::size_t most_columns = 12;  // sums that leave registers for a row of A, of sixteen

HWY_INLINE VN load_rows(const float* p, std::size_t rows) {
  return rows == 8 ? hn::LoadU(eight, p) : hn::MaskedLoad(hn::FirstN(eight, rows), eight, p);
}
HWY_INLINE void store_rows(VN v, float* p, std::size_t rows) {
  rows == 8 ? hn::StoreU(v, eight, p) : hn::BlendedStore(v, hn::FirstN(eight, rows), eight, p);
}

struct NarrowOperands {
  const ProductShape& shape;
  const std::byte *a, *b;
  float* c;
  std::uint64_t count;
  const std::uint64_t *a_offsets, *b_offsets;
};

template <std::size_t columns, bool whole>
void narrow_block(const NarrowOperands& o) {
  const ProductShape& s = o.shape;
  const std::size_t rows = whole ? 8 : static_cast<std::size_t>(s.m);
  VN sum[columns];
  unrolled<columns>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
    sum[j] =
        s.accumulate ? load_rows(o.c + static_cast<std::int64_t>(j) * s.c_stride, rows) : hn::Zero(eight);
  });
  for (std::uint64_t i = 0; i < o.count; ++i) {
    const auto* a = reinterpret_cast<const float*>(o.a + o.a_offsets[i]);
    const auto* b = reinterpret_cast<const float*>(o.b + o.b_offsets[i]);
    for (std::int64_t k = 0; k < s.k; ++k, a += s.a_stride, b += s.b_k_stride) {
      const VN row = load_rows(a, rows);
      unrolled<columns>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
        sum[j] = hn::MulAdd(row, hn::Set(eight, b[static_cast<std::int64_t>(j) * s.b_n_stride]), sum[j]);
      });
    }
  }
  unrolled<columns>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
    store_rows(sum[j], o.c + static_cast<std::int64_t>(j) * s.c_stride, rows);
  });
}

using NarrowBlock = void(const NarrowOperands&);

template <bool whole, std::size_t... i>
NarrowBlock* narrow_block_of(std::int64_t columns, std::index_sequence<i...>) {
  static constexpr NarrowBlock* blocks[] = {narrow_block<i + 1, whole>...};
  return blocks[columns - 1];
}

// Columns in blocks of nearly one size.
void narrow_batch_reduce(const ProductShape& shape, const void* a, const void* b, float* c,
                         std::uint64_t count, const std::uint64_t* a_offsets,
                         const std::uint64_t* b_offsets) {
  NarrowOperands o{
      shape,    static_cast<const std::byte*>(a), static_cast<const std::byte*>(b), c, count, a_offsets,
      b_offsets};
  constexpr std::make_index_sequence<most_columns> sizes{};
  constexpr auto most = static_cast<std::int64_t>(most_columns);
  for (std::int64_t left = shape.n; left > 0;) {
    const std::int64_t blocks = (left + most - 1) / most, columns = (left + blocks - 1) / blocks;
    (shape.m == 8 ? narrow_block_of<true>(columns, sizes) : narrow_block_of<false>(columns, sizes))(o);
    o.b += columns * shape.b_n_stride * static_cast<std::int64_t>(sizeof(float));
    o.c += columns * shape.c_stride;
    left -= columns;
  }
}

NarrowProduct* narrow_function() { return narrow_batch_reduce; }

#else

NarrowProduct* narrow_function() { return nullptr; }

#endif

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(narrow_function);

NarrowProduct* narrow_product() { return SUPERSTEP_VECTOR_FUNCTION(narrow_function)(); }

}  // namespace superstep::kernels
#endif
