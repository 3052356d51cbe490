#include "superstep/target/pjrt/stablehlo/sharding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace superstep::target::stablehlo {
namespace {

// Chosen: of smaller parameters (biases, scales) the copies take less than an exchange of their pieces.
constexpr std::int64_t least_divided_elements = 1024;

}  // namespace

std::string sharding_text(int axis, int rank, int devices) {
  if (axis == whole) return "{replicated}";
  std::vector<int> pieces(static_cast<std::size_t>(rank), 1);
  pieces[static_cast<std::size_t>(axis)] = devices;
  return fmt::format("{{devices=[{}]<=[{}]}}", fmt::join(pieces, ","), devices);
}

int axis_of_rows(const Shape& shape, std::int64_t rows, int devices) {
  return devices > 1 && shape.rank() > 0 && shape[0] == rows && rows % devices == 0 ? 0 : whole;
}

int axis_of_parameter(const Shape& shape, int devices) {
  if (devices == 1 || shape.element_count() < least_divided_elements) return whole;
  int longest = whole;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] % devices == 0 && (longest == whole || shape[axis] > shape[longest])) longest = axis;
  return longest;
}

Shape piece_shape(const Shape& shape, int axis, int devices) {
  std::vector<std::int64_t> extents = shape.extents();
  if (axis != whole) extents[static_cast<std::size_t>(axis)] /= devices;
  return Shape(extents);
}

}  // namespace superstep::target::stablehlo
