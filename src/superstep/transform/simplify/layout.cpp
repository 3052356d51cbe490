#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {
namespace {

Var drop_identity(const Site& site) { return site.inputs[0]; }

// --- transposing

std::vector<std::int64_t> permutation_of(const Node& node, int rank) {
  std::vector<std::int64_t> reversed;
  for (int axis = rank - 1; axis >= 0; --axis) reversed.push_back(axis);
  return node.attributes.integers("perm", reversed);
}

bool is_identity(const std::vector<std::int64_t>& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

Var drop_transpose(const Site& site) {
  const bool idle = is_identity(permutation_of(site.node, site.type.shape.rank()));
  return idle ? site.inputs[0] : Var();
}

// Output axis i of the pair is axis inner[outer[i]] of the source.
Var merge_transposes(const Site& site) {
  const Node* inner = site.made_by(site.inputs[0], "Transpose");
  if (!inner) return {};
  const Var source = site.input_of(*inner, 0);
  const int rank = site.type.shape.rank();
  const auto inner_axes = permutation_of(*inner, rank);
  std::vector<std::int64_t> axes = permutation_of(site.node, rank);
  for (std::int64_t& axis : axes) axis = inner_axes[static_cast<std::size_t>(axis)];
  return is_identity(axes) ? source : op::transpose(source, axes);
}

// --- views: the elements stay in their order, the extents are regrouped

bool is_view(const Node& node) { return op::traits_of(node.op).view == op::View::regroups; }

Var drop_view(const Site& site) { return site.inputs[0].type() == site.type ? site.inputs[0] : Var(); }

Var merge_views(const Site& site) {
  const Node* inner = site.made_by(site.inputs[0]);
  if (!inner || !is_view(*inner)) return {};
  return op::reshape(site.input_of(*inner, 0), site.type.shape);
}

// What is given and rounded is regrouped before that, so that rounding stands beside what reads it.
Var regroup_before_rounding(const Site& site) {
  const Node* rounding = site.made_by(site.inputs[0], "Cast");
  if (!rounding) return {};
  const Var given = site.input_of(*rounding, 0);
  if (site.builder.graph().value(given.id()).kind != graph::ValueKind::input) return {};
  return op::cast(op::reshape(given, site.type.shape), site.type.element);
}

// A reduction over extents of one changes no element.
Var reduce_nothing(const Site& site) {
  const bool same_count = site.inputs[0].shape().element_count() == site.type.shape.element_count();
  const bool some = site.type.shape.element_count() > 0;
  return same_count && some ? op::reshape(site.inputs[0], site.type.shape) : Var();
}

// --- broadcasting, cutting, joining: nothing to do when nothing changes

Var drop_when_same(const Site& site) { return drop_view(site); }

Var drop_slice(const Site& site) {
  const bool forward = !site.has(4) || site.is_all(4, 1);
  return forward ? drop_view(site) : Var();
}

// Negative pads that undo positive ones elsewhere leave the shape but move the elements.
Var drop_pad(const Site& site) { return site.is_all(1, 0) ? drop_view(site) : Var(); }

Var drop_concat(const Site& site) { return site.inputs.size() == 1 ? site.inputs[0] : Var(); }

Var merge_expands(const Site& site) {
  const Node* inner = site.made_by(site.inputs[0], "Expand");
  return inner ? op::expand(site.input_of(*inner, 0), site.type.shape) : Var();
}

// Neighbouring rows by constant numbers are a cut, and a single one by a number without an axis one without
// it.
Var cut_of_rows(const Site& site) {
  const Tensor* numbers = site.has(1) ? site.constant(site.inputs[1]) : nullptr;
  const Shape& shape = site.inputs[0].shape();
  if (!numbers || numbers->element_count() == 0 || numbers->shape().rank() > 1 || shape.rank() == 0)
    return {};
  const std::int64_t axis = normalize_axis(site.node.attributes.integer("axis", 0), shape.rank());
  const std::int64_t extent = shape[static_cast<int>(axis)], count = numbers->element_count();
  const auto number = [&](std::int64_t i) {
    const auto at = static_cast<std::int64_t>(numbers->at(i));
    return at < 0 ? at + extent : at;
  };
  const std::int64_t first = number(0);
  for (std::int64_t i = 0; i < count; ++i)
    if (number(i) != first + i || number(i) < 0 || number(i) >= extent) return {};
  const Var cut =
      count == extent ? site.inputs[0] : op::slice(site.inputs[0], {first}, {first + count}, {axis});
  return cut.shape() == site.type.shape ? cut : op::reshape(cut, site.type.shape);
}

constexpr Rule rules[] = {
    {"Identity", drop_identity},
    {"Transpose", drop_transpose},
    {"Transpose", merge_transposes},
    {"Reshape", drop_view},
    {"Reshape", merge_views},
    {"Flatten", drop_view},
    {"Flatten", merge_views},
    {"Squeeze", drop_view},
    {"Squeeze", merge_views},
    {"Unsqueeze", drop_view},
    {"Unsqueeze", merge_views},
    {"ReduceSum", reduce_nothing},
    {"ReduceMean", reduce_nothing},
    {"ReduceMax", reduce_nothing},
    {"ReduceMin", reduce_nothing},
    {"ReduceProd", reduce_nothing},
    {"Expand", drop_when_same},
    {"Expand", merge_expands},
    {"Tile", drop_when_same},
    {"Slice", drop_slice},
    {"Pad", drop_pad},
    {"Concat", drop_concat},
    {"Gather", cut_of_rows},
    {"Flatten", regroup_before_rounding},
    {"Reshape", regroup_before_rounding},
};

}  // namespace

std::span<const Rule> layout_rules() { return rules; }

}  // namespace superstep::transform
