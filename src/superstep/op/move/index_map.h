// Where gathering reads and scattering writes: element offsets into the data, one for each element (or
// slice) of the other side.
#pragma once

#include "superstep/base/tensor.h"

namespace superstep::op {

// The index counted from the front; throws Error (invalid_argument) when it lies outside.
std::int64_t checked_index(std::int64_t index, std::int64_t extent);

// Offsets of the elements that GatherElements and ScatterElements address, one for each of `indices`.
std::vector<std::int64_t> element_offsets(const Shape& data, const Tensor& indices, int axis);

// Offsets of the slices that GatherND and ScatterND address, one for each index vector.
std::vector<std::int64_t> slice_offsets(const Shape& data, const Tensor& indices, int batch_dims);

}  // namespace superstep::op
