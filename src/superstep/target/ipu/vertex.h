// The vertex that evaluates an operator's definition on its part of the operands.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/bsp/vertex_class.h"
#include "superstep/op/definition.h"

namespace superstep::target::ipu {

struct Operand {
  bool present = false;
  graph::ValueType type;
  std::optional<Tensor> known;  // a shape, axes: part of the code, not of a tile's data
};

struct OperatorPart {
  const op::Definition* definition = nullptr;
  graph::Attributes attributes;
  std::vector<Operand> inputs, outputs;
};

inline constexpr std::size_t max_operands = 24;

// Fields are in0, in1, ..., out0, out1, ... for the operands that are present and not known. Each run
// evaluates the definition: in double precision, rounded once.
bsp::VertexClass operator_vertex(std::string name, std::shared_ptr<const OperatorPart> part,
                                 std::uint64_t cycles, std::uint64_t flops);

std::string input_field(std::size_t i);
std::string output_field(std::size_t i);

}  // namespace superstep::target::ipu
