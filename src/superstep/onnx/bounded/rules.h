// What operators make of axes whose extent is a bound (onnx/bounded/bounds.h).
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "superstep/onnx/emitter.h"

namespace superstep::onnx {

// The outputs of a node that reads bounded axes, or whose shape follows how much of one is taken; nothing
// where it does neither. Axes of the outputs that are bounded are known as such. Throws Error (unsupported)
// where the operator mixes what is taken with what is not, and has no rule here that keeps them apart.
std::optional<std::vector<Var>> emit_bounded(Emitter& emitter, std::string_view op,
                                             const std::vector<Var>& inputs, const Attributes& attributes,
                                             int outputs);

// One or the other, as a condition says: both may be bounded, and of different bounds along one axis.
Var select_bounded(Emitter& emitter, Var condition, Var a, Var b);

// A node that reads bounded axes, as the rules see it.
struct BoundedSite {
  Emitter& emitter;
  std::string_view op;
  std::vector<Var> inputs;
  Attributes attributes;
  int outputs = 1;

  bool has(std::size_t input) const { return input < inputs.size() && inputs[input].valid(); }
  Var input(std::size_t i) const { return has(i) ? inputs[i] : Var(); }
  const BoundedAxes& axes(std::size_t input) const { return emitter.bounds().of(this->input(input)); }
  bool bounded(std::size_t input, int axis) const { return axes(input).contains(axis); }
  Shape shape(std::size_t input) const { return inputs[input].shape(); }

  std::vector<Var> plain() const { return emitter.plain(op, inputs, attributes, outputs); }
  // An axis of input 0 that an attribute names, counted from the front.
  int axis(std::int64_t otherwise) const;
  // The elements of an input: where they follow the bounds, those when all places are taken. Throws Error
  // (unsupported) where they are not known even so.
  std::vector<std::int64_t> when_full(std::size_t input) const;
  // A list that is an attribute in older operator sets; empty when left out.
  std::vector<std::int64_t> list(std::string_view attribute, std::size_t input) const;
};

// An axis of an input, by number.
using InputAxis = std::pair<std::size_t, int>;

// A node that keeps the places of a bounded axis apart: the bounds go where op/batch/rules.h says that
// samples would. `done`: axes that were dealt with before.
std::vector<Var> keep_apart(BoundedSite& site, const std::set<InputAxis>& done = {});

[[noreturn]] void refuse_bounded(const BoundedSite& site, const std::string& why);

// Marks an axis as bounded; of one that is bounded already the shorter counts.
void mark(Emitter& emitter, Var value, int axis, const BoundedAxis& bounded);

using BoundedRule = std::vector<Var> (*)(BoundedSite& site);
struct NamedRule {
  std::string_view op;
  BoundedRule rule;
};
std::span<const NamedRule> bounded_view_rules();       // Reshape, Expand, Range, Tile, Slice, Split, Concat
std::span<const NamedRule> bounded_choice_rules();     // Gather and its kin, Scatter and its kin, TopK
std::span<const NamedRule> bounded_reduction_rules();  // sums, means, largest, products, Softmax

}  // namespace superstep::onnx
