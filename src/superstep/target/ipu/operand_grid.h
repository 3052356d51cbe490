// Where the operands of an operator's parts lie: the grid that the cuts make, and boxes that parts share.
#pragma once

#include "superstep/target/ipu/spread.h"

namespace superstep::target::ipu {

// Into how many pieces a box goes that `sharers` tiles share: one keeps 32 elements at least.
std::int64_t pieces_of(const std::vector<Bounds>& bounds, std::int64_t sharers);

// A grid over some axes of an operand, whose boxes several parts share: `sharers[box]` are their tiles.
Spread shared_grid(Flattening flattening, const std::vector<Bounds>& bounds,
                   std::vector<std::vector<std::uint32_t>> sharers, std::int64_t grain);

// Can the value lie in groups of channels? It can when every part has whole ones.
bool in_channel_groups(const graph::ValueType& type, const Partition& partition, std::size_t output);

// The grid that the cuts make of an operand's axes, and the box of it that a part has.
class OperandGrid {
 public:
  OperandGrid(const Partition& partition, const Shape& shape, bool input, std::size_t i)
      : axis_of_(partition.bounds.size(), -1) {
    for (int axis = 0; axis < shape.rank(); ++axis) bounds_.push_back({0, shape[axis]});
    for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
      const Cut& cut = partition.cuts.axes[c];
      const CutOperand& operand = input ? cut.inputs[i] : cut.outputs[i];
      if (operand.axis < 0 || partition.bounds[c].size() == 2) continue;
      Bounds& along = bounds_[static_cast<std::size_t>(operand.axis)];
      valid_ = valid_ && along.size() == 2;
      along = partition.bounds[c];
      for (std::int64_t& bound : along) bound *= operand.chunk;
      axis_of_[c] = operand.axis;
    }
  }

  bool valid() const { return valid_; }
  const std::vector<Bounds>& bounds() const { return bounds_; }
  std::size_t boxes() const {
    std::size_t count = 1;
    for (const Bounds& along : bounds_) count *= along.size() - 1;
    return count;
  }
  std::size_t box_of(const Part& part) const {
    std::vector<std::size_t> index(bounds_.size(), 0);
    for (std::size_t c = 0; c < axis_of_.size(); ++c)
      if (axis_of_[c] >= 0)
        index[static_cast<std::size_t>(axis_of_[c])] = static_cast<std::size_t>(part.index[c]);
    std::size_t box = 0;
    for (std::size_t axis = 0; axis < bounds_.size(); ++axis)
      box = box * (bounds_[axis].size() - 1) + index[axis];
    return box;
  }

 private:
  std::vector<int> axis_of_;  // of each cut
  std::vector<Bounds> bounds_;
  bool valid_ = true;  // no two cuts go along one axis
};

}  // namespace superstep::target::ipu
