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

// Maxima are found by their place in the whole [N, C, ...] tensor; a part counts places in its own.
struct PlaneOrigin {
  std::int64_t sample = 0, channel = 0;          // of the part's first plane
  std::int64_t part_channels = 1, channels = 1;  // of the part and of the whole
  std::int64_t plane = 1;                        // elements of a plane
  std::int64_t to_whole(std::int64_t place) const;
  std::int64_t to_part(std::int64_t place) const;
};

struct OperatorPart {
  const op::Definition* definition = nullptr;
  graph::Attributes attributes;
  std::vector<Operand> inputs, outputs;
  std::optional<PlaneOrigin> places;  // of MaxPool's second result, of MaxPoolGradient's second input
};

inline constexpr std::size_t max_operands = 24;

// Fields are in0, in1, ..., out0, out1, ... for the operands that are present and not known. Each run
// evaluates the definition: in double precision, rounded once.
bsp::VertexClass operator_vertex(std::string name, std::shared_ptr<const OperatorPart> part,
                                 std::uint64_t cycles, std::uint64_t flops);

std::string input_field(std::size_t i);
std::string output_field(std::size_t i);

}  // namespace superstep::target::ipu
