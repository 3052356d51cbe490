// Where gathering reads and scattering writes: element offsets into the data, one for each element (or
// slice) of the other side.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// The index counted from the front; throws Error (invalid_argument) when it lies outside.
std::int64_t checked_index(std::int64_t index, std::int64_t extent);

// Of indices that are known when the graph is compiled: refuses one outside. `first` and `step` choose them
// from the tensor's elements, as components of index vectors lie.
void check_known_indices(const InferContext& context, std::size_t input, std::int64_t extent,
                         std::int64_t first = 0, std::int64_t step = 1);

// Offsets of the elements that GatherElements and ScatterElements address, one for each of `indices`.
std::vector<std::int64_t> element_offsets(const Shape& data, const Tensor& indices, int axis);

// Offsets of the slices that GatherND and ScatterND address, one for each index vector.
std::vector<std::int64_t> slice_offsets(const Shape& data, const Tensor& indices, int batch_dims);

}  // namespace superstep::op
