// What is known of scatters before they are lowered: those that add to zeros need no zeros in memory.
#pragma once

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// A constant of zeros, or a ConstantOfShape of zeros.
bool is_zero(const Graph& graph, ValueId id);

// ScatterND with one index a row: f32 added to what is there.
bool adds_rows(const Graph& graph, const Node& node);

// The same, and ScatterElements: f32 added to zeros.
bool adds_rows_to_zeros(const Graph& graph, const Node& node);
bool adds_elements_to_zeros(const Graph& graph, const Node& node);

}  // namespace superstep::target::cpu
