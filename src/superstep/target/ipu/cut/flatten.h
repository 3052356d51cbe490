// Operators seen with some axes of their operands joined, so that they can be cut anywhere along them.
//
// A convolution with a kernel of one position does not know rows from columns: its positions are one axis.
// An element-wise operator on operands of one shape has one axis in all.
#pragma once

#include <optional>

#include "superstep/bsp/graph/tensor.h"
#include "superstep/target/ipu/cut/cut.h"

namespace superstep::target::ipu {

enum class Flattening : std::uint8_t {
  none,
  positions,  // the axes from 2 on are one
  all         // a row of elements
};

// The shape of a value under a flattening.
Shape flattened(const Shape& shape, Flattening flattening);

class FlatOperation {
 public:
  // None when the operator cannot be seen this way.
  static std::optional<FlatOperation> make(const Operation& operation, Flattening flattening);

  FlatOperation(FlatOperation&&) = default;
  FlatOperation(const FlatOperation&) = delete;

  Flattening flattening() const { return flattening_; }
  Operation operation() const;
  // An operand's tensor as this operation sees it.
  bsp::Tensor input(std::size_t i, const bsp::Tensor& tensor) const;
  bsp::Tensor output(std::size_t i, const bsp::Tensor& tensor) const;

 private:
  struct Operand {
    bool present = false;
    graph::ValueType type;
    std::vector<std::int64_t> strides;  // positions taken of each spatial axis, before they are joined
  };

  FlatOperation(const Operation& operation, Flattening flattening);
  bool join_positions();
  bool join_product();
  bool join_broadcast();
  bool join_all();

  const Operation& whole_;
  Flattening flattening_;
  graph::Attributes attributes_;
  std::vector<Operand> inputs_, outputs_;
};

}  // namespace superstep::target::ipu
