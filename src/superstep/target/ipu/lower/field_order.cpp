#include "superstep/target/ipu/lower/field_order.h"

#include <vector>

#include "superstep/target/ipu/cut/channel_group.h"

namespace superstep::target::ipu {
namespace {

bool is_in_order(const bsp::Tensor& tensor) {
  const auto regions = tensor.view().regions();
  return regions.empty() || regions[0].loops.empty() || regions[0].loops.back().element_stride == 1;
}

}  // namespace

bsp::Tensor in_channel_order(const bsp::Tensor& tensor, std::int64_t g) {
  if (g <= 1) return tensor;
  const Shape& shape = tensor.shape();
  std::vector<std::int64_t> extents{shape[0], shape[1] / g, g};
  std::vector<int> order{0, 1};
  for (int axis = 2; axis < shape.rank(); ++axis) {
    extents.push_back(shape[axis]);
    order.push_back(axis + 1);
  }
  order.push_back(2);
  return tensor.reshape(Shape(extents)).dim_shuffle(order);
}

std::pair<bsp::Tensor, std::int64_t> field_of(const bsp::Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() < 3 || tensor.num_elements() == 0 || is_in_order(tensor)) return {tensor, 1};
  for (std::int64_t g = channel_group; g > 1; g /= 2) {
    if (shape[1] % g != 0) continue;
    bsp::Tensor field = in_channel_order(tensor, g);
    if (is_in_order(field)) return {std::move(field), g};
    break;
  }
  return {tensor, 1};
}

}  // namespace superstep::target::ipu
