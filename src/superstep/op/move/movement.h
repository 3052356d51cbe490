// Operators that move elements: transposing, cutting, joining, padding, repeating. Any element type unless
// said otherwise. Positions and lengths are inputs that must be constant when the graph is compiled.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var transpose(Var x, const std::vector<std::int64_t>& permutation = {});  // {}: axes reversed
Var swap_axes(Var x, std::int64_t a, std::int64_t b);
Var concat(std::span<const Var> inputs, std::int64_t axis);
std::vector<Var> split(Var x, std::int64_t axis, const std::vector<std::int64_t>& lengths);

// The elements starts[i], starts[i] + steps[i], ... up to but not including ends[i] of axes[i], as Python
// slices: negative positions count from the end, steps may be negative. {}: all axes, steps of one.
Var slice(Var x, const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
          const std::vector<std::int64_t>& axes = {}, const std::vector<std::int64_t>& steps = {});

// `pads`: extents added before each axis, then after each axis; negative ones cut off.
// Modes "constant" (with `value`), "edge", "reflect", "wrap".
Var pad(Var x, const std::vector<std::int64_t>& pads, double value = 0, const std::string& mode = "constant");
Var tile(Var x, const std::vector<std::int64_t>& repeats);

std::span<const Definition> movement_operators();  // Transpose Concat Split Tile
std::span<const Definition> slice_operators();     // Slice
std::span<const Definition> pad_operators();       // Pad

}  // namespace superstep::op
