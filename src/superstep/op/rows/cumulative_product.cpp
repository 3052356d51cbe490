#include <fmt/format.h>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/rows/cumulative.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

int product_axis(const Shape& shape, const Extents& axis) {
  require(axis.size() == 1, fmt::format("input axis has {} elements, expected one", axis.size()));
  return checked_axis(axis[0], shape.rank(), "input axis");
}

std::vector<ValueType> infer_product(const InferContext& context) {
  require_numeric(context, 0, "x");
  product_axis(context.input(0).shape, context.known_integers(1, "input axis"));
  return {context.input(0)};
}

// Every element `distance` places on along the axis, ones where nothing is left.
Var moved_on(Var x, int axis, std::int64_t distance, bool reversed) {
  Extents pads(static_cast<std::size_t>(2 * x.shape().rank()), 0);
  const auto before = static_cast<std::size_t>(axis),
             after = before + static_cast<std::size_t>(x.shape().rank());
  pads[before] = reversed ? -distance : distance;
  pads[after] = -pads[before];
  return pad(x, pads, 1);
}

// By doubling (Hillis and Steele, Data parallel algorithms, CACM 29, 1986): log2 n products, and derivatives
// that hold where elements are zero.
std::vector<Var> decompose_product(const DerivativeContext& context) {
  Var x = context.inputs[0];
  const int axis = product_axis(x.shape(), constant_integers(context.inputs[1]));
  const std::int64_t extent = x.shape()[axis];
  const bool reversed = context.attributes.integer("reverse", 0) != 0;
  if (x.shape().element_count() == 0) return {x};
  if (context.attributes.integer("exclusive", 0) != 0) x = moved_on(x, axis, 1, reversed);
  for (std::int64_t distance = 1; distance < extent; distance *= 2)
    x = x * moved_on(x, axis, distance, reversed);
  return {x};
}

}  // namespace

Var cumprod(Var x, std::int64_t axis, bool exclusive, bool reversed) {
  const Var axis_input = x.builder().constant(Tensor::scalar(axis));
  return x.builder().node1("CumProd", {x, axis_input},
                           {{"exclusive", std::int64_t{exclusive}}, {"reverse", std::int64_t{reversed}}});
}

std::span<const Definition> cumulative_product_operators() {
  static const Definition definitions[] = {composite<decompose_product>(
      {"CumProd", 26, 2, 2, 1, 0b10u}, infer_product,
      {.elements = Elements::numeric, .work = WorkKind::reduction, .attributes = "exclusive reverse"})};
  return definitions;
}

}  // namespace superstep::op
