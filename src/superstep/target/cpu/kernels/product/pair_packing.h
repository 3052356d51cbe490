// bf16 rows rearranged for dot products of pairs along the columns. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// `columns` (even) columns of `channels` elements, `stride` apart.
struct PairPacking {
  const bf16* from;
  std::int64_t stride, columns, channels;
};

struct PairPackers {
  // to: [columns / 2][channels][2], each pair two neighbouring columns.
  void (*interleave)(const PairPacking& packing, bf16* to);
  // to: [channels][columns]; `scratch` has room for columns * channels elements.
  void (*transpose)(const PairPacking& packing, bf16* to, bf16* scratch);
};

// For the instruction set in force.
PairPackers pair_packers();

}  // namespace superstep::kernels
