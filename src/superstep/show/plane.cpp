#include "superstep/show/plane.h"

#include <algorithm>
#include <cmath>

namespace superstep::show {
namespace {

// Height and width: the extents of the axes that have more than one element, or as many ones as are missing.
std::pair<int, int> extents_of_plane(const Shape& shape, int rank) {
  std::vector<int> extents;
  for (int axis = 0; axis < rank; ++axis)
    if (shape[axis] != 1) extents.push_back(static_cast<int>(shape[axis]));
  while (extents.size() < 2) extents.insert(extents.begin(), 1);
  return {extents[0], extents[1]};
}

float mean_of_block(const Plane& plane, int left, int top, int factor) {
  double sum = 0, count = 0;
  for (int y = top; y < std::min(top + factor, plane.height); ++y)
    for (int x = left; x < std::min(left + factor, plane.width); ++x)
      if (const float value = plane.values[static_cast<std::size_t>(y) * plane.width + x]; !std::isnan(value))
        sum += value, ++count;
  return count > 0 ? static_cast<float>(sum / count) : NAN;
}

}  // namespace

Plane plane_of(const Tensor& tensor) {
  const auto [height, width] = extents_of_plane(tensor.shape(), tensor.shape().rank());
  const auto values = tensor.as<float>();
  return {width, height, {values.begin(), values.end()}};
}

ComplexPlane complex_plane_of(const Tensor& tensor) {
  const auto [height, width] = extents_of_plane(tensor.shape(), tensor.shape().rank() - 1);
  const auto parts = tensor.as<float>();
  ComplexPlane plane{{width, height, {}}, {width, height, {}}};
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    plane.amplitude.values.push_back(std::hypot(parts[i], parts[i + 1]));
    plane.phase.values.push_back(std::atan2(parts[i + 1], parts[i]));
  }
  return plane;
}

Plane reduced(const Plane& plane, int factor) {
  if (factor <= 1) return plane;
  Plane small{(plane.width + factor - 1) / factor, (plane.height + factor - 1) / factor, {}};
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x)
      small.values.push_back(mean_of_block(plane, x * factor, y * factor, factor));
  return small;
}

Plane logarithm(const Plane& plane) {
  float largest = 0;
  for (float value : plane.values)
    if (std::isfinite(value)) largest = std::max(largest, value);
  // Four decades: what lies below is drawn as their foot.
  const float foot = largest > 0 ? largest * 1e-4f : 1;
  Plane result = plane;
  for (float& value : result.values)
    if (!std::isnan(value)) value = std::log10(std::max(value, foot));
  return result;
}

}  // namespace superstep::show
