#include "superstep/op/move/index_map.h"

#include <fmt/format.h>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/strided.h"

namespace superstep::op {

std::int64_t checked_index(std::int64_t index, std::int64_t extent) {
  if (index < -extent || index >= extent)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("index {} of input indices lies outside [{}, {}]", index, -extent, extent - 1));
  return index < 0 ? index + extent : index;
}

void check_known_indices(const InferContext& context, std::size_t input, std::int64_t extent,
                         std::int64_t first, std::int64_t step) {
  const Tensor* known = input < context.constants.size() ? context.constants[input] : nullptr;
  if (!known) return;
  dispatch(known->type(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      const auto indices = known->as<T>();
      for (auto i = static_cast<std::size_t>(first); i < indices.size(); i += static_cast<std::size_t>(step))
        checked_index(static_cast<std::int64_t>(indices[i]), extent);
    }
  });
}

std::vector<std::int64_t> element_offsets(const Shape& data, const Tensor& indices, int axis) {
  std::vector<std::int64_t> strides = data.row_major_strides();
  const std::int64_t step = strides[static_cast<std::size_t>(axis)];
  strides[static_cast<std::size_t>(axis)] = 0;
  std::vector<std::int64_t> offsets = integers_of(indices);
  for_each_strided(indices.shape(), strides, 0, [&](std::int64_t i, std::int64_t base) {
    auto& offset = offsets[static_cast<std::size_t>(i)];
    offset = base + checked_index(offset, data[axis]) * step;
  });
  return offsets;
}

std::vector<std::int64_t> slice_offsets(const Shape& data, const Tensor& indices, int batch_dims) {
  const std::vector<std::int64_t> strides = data.row_major_strides(), values = integers_of(indices);
  const int depth = static_cast<int>(indices.shape()[indices.shape().rank() - 1]);
  std::int64_t batches = 1, count = 1;
  for (int axis = 0; axis + 1 < indices.shape().rank(); ++axis)
    (axis < batch_dims ? batches : count) *= indices.shape()[axis];
  const std::int64_t batch_size = batches ? data.element_count() / batches : 0;
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < batches * count; ++i) {
    std::int64_t offset = i / count * batch_size;
    for (int k = 0; k < depth; ++k) {
      const std::int64_t index = values[static_cast<std::size_t>(i * depth + k)];
      offset +=
          checked_index(index, data[batch_dims + k]) * strides[static_cast<std::size_t>(batch_dims + k)];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

}  // namespace superstep::op
