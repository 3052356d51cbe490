#include "superstep/target/cpu/kernels/bytes/byte_product.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/instruction_set.h"

namespace superstep::kernels {
namespace {

// One column of C: four bytes of B at a time, against a row of quads.
void add_column(const ProductShape& s, const std::int8_t* a, const std::uint8_t* b, std::int32_t* c) {
  for (std::int64_t quad = 0; quad < s.k / 4; ++quad, a += 4 * s.a_stride, b += 4)
    for (std::int64_t i = 0; i < s.m; ++i)
      c[i] += a[4 * i] * b[0] + a[4 * i + 1] * b[1] + a[4 * i + 2] * b[2] + a[4 * i + 3] * b[3];
}

}  // namespace

std::string generated_bytes_refusal(const ProductShape& shape) {
  if (!has_byte_dot_products()) return "products of bytes need AVX-512 VNNI";
  if (shape.k % 4 != 0) return "products of bytes need an inner dimension that is a multiple of 4";
  if (shape.b_k_stride != 1) return "products of bytes need the inner dimension contiguous";
  // The generator counts the distance in quads.
  if (shape.b_n_stride % 4 != 0 && shape.n > 1)
    return "products of bytes need columns whose distance is a multiple of 4";
  return {};
}

void portable_byte_product(const ProductShape& s, const void* a, const void* b, float* c, std::uint64_t count,
                           const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) {
  auto* sums = reinterpret_cast<std::int32_t*>(c);
  for (std::int64_t column = 0; column < s.n; ++column, sums += s.c_stride) {
    if (!s.accumulate) std::fill_n(sums, s.m, 0);
    for (std::uint64_t i = 0; i < count; ++i)
      add_column(s, static_cast<const std::int8_t*>(a) + a_offsets[i],
                 static_cast<const std::uint8_t*>(b) + b_offsets[i] + column * s.b_n_stride, sums);
  }
}

}  // namespace superstep::kernels
