#include "superstep/onnx/bounded/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

Var number(Emitter& e, std::int64_t value) { return e.constant(Tensor::scalar(value)); }

std::int64_t bound_of(const NodeImport& node, std::int64_t most) {
  if (!node.bound)
    refuse_node(
        "the shape of the result depends on the elements of what it reads",
        "say how long it may be: --bound 'NODE=N' with the node's name, or --bound '*=all'; else choose by "
        "a mask (Where), or cut the model before it");
  return *node.bound < 0 ? most : std::min(*node.bound, most);
}

// The places of a line of booleans that are true, first ones first, as many as the bound allows.
struct Chosen {
  Var places;  // i64 [bound]; zero where nothing was found
  BoundedAxis axis;
};

Chosen chosen_places(NodeImport& node, Var mask) {
  Emitter& e = node.emitter;
  const std::int64_t count = mask.shape()[0], bound = bound_of(node, count);
  if (count == 0) return {e.integers({}), {.count = bounded_count(e, number(e, 0), 0, false)}};
  const Var ones = e.plain1("Cast", {mask}, {{"to", std::int64_t{7}}});
  const Var sums = e.plain1("CumSum", {ones, number(e, 0)});
  const Var found = e.plain1("Gather", {sums, number(e, count - 1)});
  // One place more takes what is not chosen, and what has no room.
  const Var rank = e.plain1("Min", {e.plain1("Sub", {sums, number(e, 1)}), number(e, bound)});
  const Var to = e.plain1("Where", {mask, rank, number(e, bound)});
  const Var none = e.constant(Tensor(ElementType::i64, {bound + 1}));
  const Var written =
      e.plain1("ScatterElements", {none, to, places(e, count, 0, 1)}, {{"axis", std::int64_t{0}}});
  return {e.plain1("Slice", {written, e.integers({0}), e.integers({bound})}),
          {.count = bounded_count(e, found, bound, bound < count)}};
}

Var is_nonzero(Emitter& e, Var x) {
  const Var taken_part = filled(e, x, 0);
  if (x.element() == ElementType::boolean) return taken_part;
  return e.plain1("Not", {e.plain1("Equal", {taken_part, e.scalar(x.element(), 0)})});
}

}  // namespace

std::vector<Var> bounded_nonzero(NodeImport& node) {
  Emitter& e = node.emitter;
  const Var x = node.input(0);
  if (e.known(x)) return node.pass();
  if (x.shape().rank() == 0) refuse_node("is of a single number that depends on the data");
  const Shape flat{x.shape().element_count()};
  const Chosen chosen =
      chosen_places(node, e.plain1("Reshape", {is_nonzero(e, x), e.integers(flat.extents())}));
  const std::vector<std::int64_t> strides = x.shape().row_major_strides();
  std::vector<Var> coordinates;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    Var at = chosen.places;
    if (const std::int64_t stride = strides[static_cast<std::size_t>(axis)]; stride > 1)
      at = e.plain1("Div", {at, number(e, stride)});
    if (axis > 0) at = e.plain1("Mod", {at, number(e, std::max<std::int64_t>(x.shape()[axis], 1))});
    coordinates.push_back(e.plain1("Unsqueeze", {at, e.integers({0})}));
  }
  const Var result =
      coordinates.size() == 1 ? coordinates[0] : e.plain1("Concat", coordinates, {{"axis", std::int64_t{0}}});
  e.bounds().set(result, 1, chosen.axis);
  return {result};
}

std::vector<Var> bounded_compress(NodeImport& node) {
  Emitter& e = node.emitter;
  if (e.known(node.input(1))) return node.pass();
  Var x = node.input(0), condition = node.input(1);
  const bool flat = !node.attributes.has("axis");
  if (flat && x.shape().rank() != 1) x = e.emit1("Reshape", {x, e.integers({-1})});
  const int axis = flat ? 0 : op::checked_axis(node.attributes.integer("axis"), x.shape().rank());
  if (condition.shape().rank() != 1 || condition.shape()[0] > x.shape()[axis])
    throw Error(ErrorCode::bad_graph,
                fmt::format("input condition has shape {}, expected at most {} elements",
                            superstep::to_string(condition.shape()), x.shape()[axis]));
  condition = filled(e, condition, 0);
  const BoundedAxes axes = e.bounds().of(x);
  if (const auto taken_of_x = axes.find(axis); taken_of_x != axes.end())
    condition = e.plain1(
        "And",
        {condition, e.plain1("Less", {places(e, condition.shape()[0], 0, 1), taken(e, taken_of_x->second)})});
  const Chosen chosen = chosen_places(node, condition);
  const Var result = picked(e, x, axis, chosen.places);
  for (const auto& [at, bounded] : axes)
    if (at != axis) e.bounds().set(result, at, bounded);
  e.bounds().set(result, axis, chosen.axis);
  return {result};
}

namespace {

// What is left out, as it is understood: no box, every overlap, every score that is a number.
void fill_thresholds(NodeImport& node) {
  Emitter& e = node.emitter;
  if (!node.has(2)) node.set_input(2, e.integers({0}));
  if (!node.has(3)) node.set_input(3, e.constant(Tensor::from<float>({1}, {0})));
  if (!node.has(4)) node.set_input(4, e.constant(Tensor::from<float>({1}, {-3.4e38F})));
}

}  // namespace

std::vector<Var> bounded_boxes(NodeImport& node) {
  Emitter& e = node.emitter;
  const bool known = std::ranges::all_of(node.inputs, [&](const Var& x) { return !x.valid() || e.known(x); });
  if (known) return node.pass();
  const Var scores = node.input(1);
  if (scores.shape().rank() != 3)
    throw Error(ErrorCode::bad_graph, "input scores must have three axes: picture, class, box");
  const Shape shape = scores.shape();
  std::int64_t most = shape[2];
  if (const Tensor* limit = node.has(2) ? e.when_full(node.input(2)) : nullptr)
    most = std::clamp<std::int64_t>(op::integer_of(*limit), 0, most);
  const std::int64_t all = shape[0] * shape[1] * most, bound = bound_of(node, all);
  node.inputs[0] = filled(e, node.input(0), 0);
  node.inputs[1] = filled(e, scores, lowest_of(scores.element()));
  fill_thresholds(node);
  node.attributes.set("bound", bound);
  const std::vector<Var> outputs = e.plain("superstep.KeptBoxes", node.inputs, node.attributes, 2);
  e.bounds().set(outputs[0], 0, {.count = bounded_count(e, outputs[1], bound, bound < all)});
  return {outputs[0]};
}

// A number of results that the graph computes: at most as many as there are.
std::vector<Var> bounded_top_k(NodeImport& node) {
  Emitter& e = node.emitter;
  if (!node.has(1) || e.when_full(node.input(1))) return node.pass();
  const Var x = node.input(0);
  const int axis = op::checked_axis(node.attributes.integer("axis", -1), x.shape().rank());
  const std::int64_t bound = bound_of(node, x.shape()[axis]);
  const Var wanted = e.plain1("Reshape", {node.input(1), e.integers({})});
  const Var count = bounded_count(e, wanted, bound, bound < x.shape()[axis]);
  node.inputs[1] = e.plain1("Reshape", {count, e.integers({1})});
  return node.pass();
}

}  // namespace superstep::onnx
