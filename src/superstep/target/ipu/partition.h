// How many parts an operator is cut into along each of its cuts, and what each part is.
#pragma once

#include <vector>

#include "superstep/bsp/interval.h"
#include "superstep/machine/ipu/hardware.h"
#include "superstep/op/definition.h"
#include "superstep/target/ipu/cut.h"

namespace superstep::target::ipu {

struct Partition {
  Cuts cuts;
  std::vector<std::int64_t> parts;  // along each cut
  std::int64_t count() const;
};

// A part: the range of units along each cut.
using PartRange = std::vector<bsp::Interval>;
PartRange part_range(const Partition& partition, std::int64_t part);

// Shapes and attributes of a part.
struct PartShape {
  graph::Attributes attributes;
  std::vector<Shape> inputs, outputs;  // empty where left out
};
PartShape part_shape(const Operation& operation, const Partition& partition, const PartRange& range);

// The fastest by the cycles of its largest part and the bytes that it must receive, in at most `tiles` parts.
// An operator that cannot be cut, or whose definition does not agree with the rule for its parts, is one
// part.
Partition choose_partition(const machine::ipu::Hardware& hardware, const op::Definition& definition,
                           const Operation& operation, std::int64_t tiles);

// Modelled cycles of a part.
std::uint64_t cycles_of(const machine::ipu::Hardware& hardware, const Operation& operation,
                        const PartShape& shape);

}  // namespace superstep::target::ipu
