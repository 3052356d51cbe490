// How an operator can be cut into parts that are the same operator on slices of its operands.
//
// A cut goes along one dimension of the work: the samples, the output channels, the columns of a product. It
// says for every operand which axis follows it; an operand without such an axis goes whole to every part. A
// part of the results then needs nothing but its slices, so that a vertex can evaluate the operator's
// definition on them.
#pragma once

#include <string>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::target::ipu {

struct CutOperand {
  int axis = -1;           // -1: whole
  std::int64_t chunk = 1;  // elements along the axis a unit
};

struct Cut {
  std::int64_t units = 1;  // what is dealt out
  std::vector<CutOperand> inputs, outputs;
  std::string attribute;  // becomes the number of units of a part (`group` of a grouped convolution)
};

struct Cuts {
  std::vector<Cut> axes;  // none: the operator stays whole
  bool flat = false;      // operands of full size are cut as one row of elements
};

// An operator with its types, as the rules see it. Null where an optional operand is left out.
struct Operation {
  const graph::Node* node = nullptr;
  std::vector<const graph::ValueType*> inputs, outputs;
  std::vector<const Tensor*> constants;  // of inputs whose elements are known

  const Shape& input(std::size_t i) const { return inputs[i]->shape; }
  const Shape& output(std::size_t i = 0) const { return outputs[i]->shape; }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i]; }
};
Operation operation_of(const graph::Graph& graph, const graph::Node& node);

Cuts cuts_of(const Operation& operation);

}  // namespace superstep::target::ipu
