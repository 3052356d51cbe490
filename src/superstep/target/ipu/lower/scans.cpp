#include "superstep/target/ipu/lower/scans.h"

#include <cmath>

#include "superstep/base/integers.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/cumulative.h"

namespace superstep::target::ipu {
namespace {

using Extents = std::vector<std::int64_t>;
using op::Var;

// Chosen: a line shorter than this is summed before three more supersteps are under way, and with more lines
// most tiles have one.
constexpr std::int64_t least_length = 512, most_lines = 256;

int axis_of(const graph::Graph& graph, const graph::Node& node) {
  const auto axis = static_cast<std::int64_t>(graph.value(node.inputs[1]).data.at(0));
  return normalize_axis(axis, graph.type(node.inputs[0]).shape.rank());
}

// So many blocks as elements in one, about, so that both sums are short: a divisor of the length where one is
// within a factor of four, since what does not divide is padded.
std::int64_t blocks_of(std::int64_t length) {
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(length)));
  for (std::int64_t away = 0; away < root; ++away)
    for (const std::int64_t blocks : {root - away, root + away})
      if (4 * blocks >= root && length % blocks == 0) return blocks;
  return root;
}

// `x` with zeros behind `axis` up to `length`.
Var padded(Var x, int axis, std::int64_t length) {
  const std::int64_t missing = length - x.shape()[axis];
  if (missing == 0) return x;
  Extents pads(static_cast<std::size_t>(2 * x.shape().rank()), 0);
  pads[static_cast<std::size_t>(x.shape().rank() + axis)] = missing;
  return op::pad(x, pads);
}

}  // namespace

bool is_long_scan(const graph::Graph& graph, const graph::Node& node) {
  if (node.op != "CumSum" || graph.value(node.inputs[1]).kind != graph::ValueKind::constant) return false;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const std::int64_t length = shape.rank() > 0 ? shape[axis_of(graph, node)] : 0;
  return length >= least_length && shape.element_count() / length <= most_lines;
}

void scan_in_blocks(transform::Rewrite& rewrite, const graph::Node& node) {
  const int axis = axis_of(rewrite.old(), node);
  const Var x = rewrite.now(node.inputs[0]);
  const bool exclusive = node.attributes.integer("exclusive", 0) != 0,
             reversed = node.attributes.integer("reverse", 0) != 0;
  const std::int64_t length = x.shape()[axis], blocks = blocks_of(length), block = ceil_div(length, blocks);
  Extents extents = x.shape().extents();
  extents[static_cast<std::size_t>(axis)] = blocks;
  extents.insert(extents.begin() + axis + 1, block);
  const Var parts = op::reshape(padded(x, axis, blocks * block), Shape(extents));
  const Var within = op::cumsum(parts, axis + 1, exclusive, reversed);
  const auto last = [&](Var of) {
    const std::int64_t at = reversed ? 0 : block - 1;
    return op::slice(of, {at}, {at + 1}, {axis + 1});
  };
  const Var sums = exclusive ? last(within) + last(parts) : last(within);
  const Var both = within + op::cumsum(sums, axis, true, reversed);
  extents.erase(extents.begin() + axis + 1);
  extents[static_cast<std::size_t>(axis)] = blocks * block;
  const Var joined = op::reshape(both, Shape(extents));
  rewrite.replace(
      node, std::vector<Var>{blocks * block == length ? joined : op::slice(joined, {0}, {length}, {axis})});
}

}  // namespace superstep::target::ipu
