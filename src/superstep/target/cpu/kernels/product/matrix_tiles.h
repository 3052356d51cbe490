// The batch-reduce product of bf16 pairs or bytes by the processor's matrix registers (Intel AMX: eight
// registers of 16 rows of 64 bytes, one instruction for a product of two). Internal to the kernels.
//
// A product's columns are the rows of a register, so that operands in the order of batch_reduce.h are read
// where they lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include "superstep/target/cpu/kernels/product/product_shape.h"

namespace superstep::kernels {

// What LDTILECFG reads: extents of the registers. Intel, Software Developer's Manual, volume 1, section 18.
struct alignas(64) MatrixTileSetting {
  std::uint8_t palette = 1, start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{};
  std::array<std::uint8_t, 16> rows{};
};
static_assert(sizeof(MatrixTileSetting) == 64);

// A shape's product, divided into blocks of up to 32 x 32 results.
struct MatrixTileProduct {
  ProductShape shape;
  std::int64_t depth = 0;  // bytes of a column that one instruction sums; a divisor of the shape's
  std::array<std::array<MatrixTileSetting, 2>, 2> settings{};  // [last block of rows][last block of columns]

  // The reason when the shape is refused: small, of another type, or with an inner dimension that no even
  // step divides.
  static std::expected<MatrixTileProduct, std::string> prepare(const ProductShape& shape);

  void operator()(const void* a, const void* b, float* c, std::uint64_t count, const std::uint64_t* a_offsets,
                  const std::uint64_t* b_offsets) const;
};

}  // namespace superstep::kernels
