// A model as the program of one chip or of several, by the options of a compilation.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "superstep/target/ipu/lower/lowering.h"
#include "superstep/target/ports.h"

namespace superstep::target::ipu {

struct ChipProgram {
  graph::Graph graph;  // of a micro-batch, as it was lowered
  LoweredGraph lowered;
  std::string layout;  // over several chips, for people; empty: one chip
};

// `left_out`: passes (prepare.h), by name. Throws Error: invalid_argument on chips that cannot share the
// batch, and what lowering throws.
ChipProgram lower_for(const GraphAtBatch& model, std::string_view machine, const BatchedPorts& ports,
                      const CompileOptions& options, const LowerOptions& lower_options = {},
                      std::span<const std::string> left_out = {});

}  // namespace superstep::target::ipu
