// What a model's numbers are kept in on a machine. Three types matter: that of the data, that of partial
// sums, and that of stored weights; the partial sums alone change an IPU's peak by two.
#pragma once

#include <string>
#include <string_view>

#include "superstep/base/element_type.h"
#include "superstep/graph/graph.h"

namespace superstep::machine {

struct Precision {
  std::string name = "f16";
  ElementType data = ElementType::f16, partials = ElementType::f32, weights = ElementType::f16,
              optimizer = ElementType::f32;

  // Bytes of a value of a training or inference graph, whose floating-point values are f32 as built.
  double bytes(const graph::Value& value) const;
};

// "f32"; "tf32" (f32 data on matrix units); "f16" and "bf16" (16-bit data and weights, f32 sums and optimiser
// state); "mixed" (16-bit data, f32 weights); "16.16" (f16 throughout). Throws Error (invalid_argument).
Precision precision_from_name(std::string_view name);

}  // namespace superstep::machine
