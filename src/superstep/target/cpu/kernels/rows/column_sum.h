// Sums over the columns of an image, for gradients of biases. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// sum[c] += the sum of p[i * stride + c] over i < columns, for c < channels. Partial sums: four interleaved
// ones, then added up, so that the order is fixed.
using ColumnSum = void(const void* p, std::int64_t stride, std::int64_t columns, std::int64_t channels,
                       float* sum);

// For the instruction set in force; f32 or bf16.
ColumnSum* column_sum(ElementType type);

}  // namespace superstep::kernels
