// What a local rule of `simplify` sees and gives.
//
// A rule looks at one node, what stands for its inputs and, one step further, at the nodes that made those.
// It gives what can stand for the node's first output (an input, or something newly built), or an invalid
// Var where it does not apply. Rules must be exact but for the sign of a zero.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "superstep/op/core/definition.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {

struct Site {
  Builder& builder;
  const Node& node;             // the old node; its ids are those of the old graph
  const graph::ValueType type;  // of its first output
  std::vector<Var> inputs;      // in the new graph; invalid where left out

  bool has(std::size_t input) const { return input < inputs.size() && inputs[input].valid(); }

  // The node that made a value, when it is computed by `op` (any operator: empty). Null otherwise, and when
  // the site belongs to phase update and that node does not: looking through it would move the border
  // between backward and update.
  const Node* made_by(Var value, std::string_view op = {}) const;
  Var input_of(const Node& made, std::size_t input) const { return builder.var(made.inputs[input]); }

  const Tensor* constant(Var value) const;              // its elements, null when not constant
  bool is_all(std::size_t input, double number) const;  // a constant of which every element is `number`
};

struct Rule {
  std::string_view op;
  Var (*apply)(const Site& site);
};

std::span<const Rule> arithmetic_rules();  // x + 0, x * 1, -(-x), x + (-y)
std::span<const Rule> layout_rules();      // Identity, Transpose, Reshape and its like, Expand, Slice, Concat
std::span<const Rule> broadcast_rules();   // element-wise operators of values that were spread out
std::span<const Rule> cast_rules();
std::span<const Rule> random_rules();  // Dropout
std::span<const Rule> index_rules();   // ScatterElements, GatherElements of whole rows

}  // namespace superstep::transform
