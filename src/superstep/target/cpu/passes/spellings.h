// Functions that exporters write out as formulas.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// A model in which these formulas of f32 values, in any order of their factors and terms, are one operator:
//   x (1 + erf(x / sqrt 2)) / 2                               Gelu
//   x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2         Gelu, approximate = tanh
//   (x - mean) / sqrt(variance + epsilon) of the last axes   LayerNormalization, with scale and shift
// Constants are taken for these where they are within 1e-4 of them: exporters round. Results differ by
// rounding. Inputs, states, outputs and their names stay.
graph::Graph recognize_spellings(const graph::Graph& model);

}  // namespace superstep::target::cpu
