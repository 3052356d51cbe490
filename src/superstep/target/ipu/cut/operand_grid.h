// The grid that the cuts of an operator make of one of its operands, and how tiles share its boxes.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/ipu/place/spread.h"

namespace superstep::target::ipu {

inline constexpr std::int64_t least_elements = 32;  // of a value on a tile that shares it with others

// The grid that the cuts make of an operand's axes, and the box of it that a part has.
class OperandGrid {
 public:
  // Of input or output `i` of an operator that is cut into `partition`.
  OperandGrid(const Partition& partition, const Shape& shape, bool input, std::size_t i);

  bool valid() const { return valid_; }
  const std::vector<Bounds>& bounds() const { return bounds_; }
  std::size_t boxes() const;
  std::size_t box_of(const Part& part) const;

 private:
  std::vector<int> axis_of_;  // of each cut
  std::vector<Bounds> bounds_;
  bool valid_ = true;  // no two cuts go along one axis
};

// A grid whose boxes several parts share: `sharers[box]` are their tiles, of which as many take a piece as
// leaves each at least `least_here` elements.
Spread shared_grid(Flattening flattening, const std::vector<Bounds>& bounds,
                   std::vector<std::vector<std::uint32_t>> sharers, std::int64_t grain,
                   std::int64_t least_here = least_elements);

// Can the value lie in groups of channels? It can when every part has whole ones.
bool in_channel_groups(const graph::ValueType& type, const Partition& partition, std::size_t output);

}  // namespace superstep::target::ipu
