// The parts of an operator: ranges along its cuts, and the shapes, slices and attributes that follow.
#pragma once

#include <optional>
#include <vector>

#include "superstep/bsp/graph/interval.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/ipu/cut/cut.h"

namespace superstep::target::ipu {

// 0 = b[0] < b[1] < ... = extent: what lies between neighbours goes together.
using Bounds = std::vector<std::int64_t>;
// `parts` ranges of whole grains, which differ by one grain at most.
Bounds even_bounds(std::int64_t extent, std::int64_t parts, std::int64_t grain = 1);

struct Partition {
  Cuts cuts;
  std::vector<Bounds> bounds;        // along each cut
  std::vector<std::uint32_t> tiles;  // of each part; empty: one after the other over all tiles
  // Parts of different turns run one after the other: the turn of a part is its index along this cut modulo
  // `turns`.
  std::size_t turn_cut = 0;
  std::int64_t turns = 1;

  std::int64_t count() const;
  std::int64_t partials() const;          // parts that make partial results of the same elements
  bool summed(std::size_t output) const;  // of this output
};

// An operator that stays whole.
Partition whole_partition();

// Where a part stands: its index and range along every cut.
struct Part {
  std::vector<std::int64_t> index;
  std::vector<bsp::Interval> range;
  std::int64_t partial = 0;  // which of the partial results it makes
  std::int64_t turn = 0;
};
Part part_of(const Partition& partition, std::int64_t number);

// What a part sees of an operand: ranges along some of its axes.
struct AxisRange {
  int axis = 0;
  bsp::Interval range;
};
std::vector<AxisRange> operand_ranges(const Cuts& cuts, const Part& part, bool input, std::size_t i);

struct PartShape {
  graph::Attributes attributes;
  std::vector<std::optional<Shape>> inputs, outputs;  // none where left out
  std::vector<std::optional<Tensor>> known;           // of inputs that are part of the code: shapes, axes
  // What Cuts::adapt sets: an evaluation instead of the operator's own, and the numbers that tell the part
  // from others of the same shapes.
  std::function<void(const op::EvaluateContext&)> evaluate = nullptr;
  // Of a part that has some of a kernel's positions, which attributes cannot say; empty: they do.
  std::vector<op::Window> windows = {};
  std::vector<std::int64_t> place = {};
};
PartShape part_shape(const op::Definition& definition, const Operation& operation, const Partition& partition,
                     const Part& part);

// The convolution of a part with windows of its own.
op::ConvGeometry geometry_of(op::ProductKind kind, const PartShape& part);

// What tells the parts of a node apart: shapes, padding, places.
std::vector<std::int64_t> key_of(const PartShape& part);

// Does the operator's own shape rule give what the cuts say? A part with an evaluation of its own needs none.
bool agrees(const op::Definition& definition, const Operation& operation, const PartShape& part);

}  // namespace superstep::target::ipu
