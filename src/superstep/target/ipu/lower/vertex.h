// The vertex that evaluates an operator's definition on its part of the operands.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/bsp/graph/vertex_class.h"
#include "superstep/op/core/definition.h"

namespace superstep::target::ipu {

struct Operand {
  bool present = false;
  graph::ValueType type;
  std::optional<Tensor> known;  // a shape, axes: part of the code, not of a tile's data
  // Channels of a group that lie innermost on the tile: [N, C / g, positions, g]. 1: the operator's own
  // order.
  std::int64_t channel_group = 1;
};

// Maxima are found by their place in the whole [N, C, ...] tensor; a part counts places in its own.
struct PlaceBox {
  std::vector<std::int64_t> begin;        // of the part, along every axis of the whole
  std::vector<std::int64_t> part, whole;  // extents
  std::int64_t to_whole(std::int64_t place) const;
  // Throws Error (invalid_argument) where it is no place of the part.
  std::int64_t to_part(std::int64_t place) const;
};

struct OperatorPart {
  std::string node;  // what is refused while it runs says where
  const op::Definition* definition = nullptr;
  graph::Attributes attributes;
  std::vector<Operand> inputs, outputs;
  std::optional<PlaceBox> places;  // of MaxPool's second result, of MaxPoolGradient's second input
  std::function<void(const op::EvaluateContext&)> evaluate = nullptr;  // instead of the definition's
  std::uint64_t number = 0;  // tells parts apart, also those of other graphs; given by operator_vertex
};

inline constexpr std::size_t max_operands = 24;

// Fields are in0, in1, ..., out0, out1, ... for the operands that are present and not known. Each run
// evaluates the definition: in double precision, rounded once.
bsp::VertexClass operator_vertex(std::string name, OperatorPart part, std::uint64_t cycles,
                                 std::uint64_t flops);

std::string input_field(std::size_t i);
std::string output_field(std::size_t i);

}  // namespace superstep::target::ipu
