// Matrices rearranged for products of bf16 pairs along their inner dimension ("depth").
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Element (d, w) of the source lies at d * depth_stride + w * width_stride. The result is bf16 and dense, an
// odd depth padded with zeros:
//   panels   [ceil(depth / 2)][width][2]: the left operand of a product (batch_reduce.h)
//   columns  [width][ceil(depth / 2) * 2]: the right one
// f32 is rounded to nearest, ties to even. Slots: inputs the source; outputs the result.
struct PairPanel {
  enum class Order : std::uint8_t { panels, columns };

  std::int64_t depth = 1, width = 1;
  std::int64_t depth_stride = 1, width_stride = 1;
  ElementType type = ElementType::bf16;  // of the source: bf16 or f32
  Order order = Order::panels;
};

inline std::int64_t padded_depth(std::int64_t depth) { return (depth + 1) / 2 * 2; }

// Fast where one of the strides is 1.
Prepared prepare(const PairPanel& panel);

}  // namespace superstep::kernels
