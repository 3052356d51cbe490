// Which arithmetic each node is computed in: "numerics:gc200;encoder.*=f16" as the name of a target.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/machine/numerics.h"

namespace superstep::target::numerics {

// What the names of such targets begin with.
inline constexpr std::string_view target_prefix = "numerics:";

struct NodeArithmetic {
  std::string pattern;  // of the node's name; * and ? are any letters (base/wildcard.h)
  machine::NamedArithmetic arithmetic;
};

struct Spec {
  machine::NamedArithmetic base;
  std::vector<NodeArithmetic> nodes;  // the last that fits decides

  // Losses, and their gradients, are taken in f32 by every framework's wrapper for short types: f32 unless a
  // pattern says otherwise.
  const superstep::numerics::Arithmetic& of(const graph::Node& node) const;
};

// Throws Error (invalid_argument) naming what there is not.
Spec parse_spec(std::string_view text);
// Throws Error (invalid_argument) naming a pattern that fits no node of the graph.
void check_patterns(const Spec& spec, const graph::Graph& graph);

// A node's name, or of "d(conv1)", which is on its way backwards, conv1.
std::string_view forward_name(std::string_view name);

}  // namespace superstep::target::numerics
