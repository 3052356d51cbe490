// What a vertex that evaluates a part of an operator takes: the machine model's closed forms of vertices
// (machine/ipu/vertex_cycles.h) where there is one for the operator, a rate by kind of work elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/machine/ipu/hardware.h"

namespace superstep::target::ipu {

struct PartTypes {
  const graph::Attributes& attributes;
  std::vector<graph::ValueType> inputs, outputs;  // of the part; an empty shape of no use where left out
};

// Tile cycles of the part, all workers together.
std::uint64_t part_cycles(const machine::ipu::Hardware& hardware, std::string_view op,
                          const PartTypes& types);

}  // namespace superstep::target::ipu
