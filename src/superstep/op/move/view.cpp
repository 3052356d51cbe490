#include "superstep/op/move/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/strided.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

void copy_elements(const EvaluateContext& context) {
  std::memcpy(context.output(0).bytes(), context.input(0).bytes(), context.input(0).byte_count());
}

std::vector<Var> vjp_view(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  result[0] = reshape(cotangents[0], context.inputs[0].shape());
  return result;
}

std::vector<Var> jvp_view(const DerivativeContext& context, std::span<const Var> tangents) {
  if (!tangents[0].valid()) return {Var()};
  return {reshape(tangents[0], context.outputs[0].shape())};
}

// Replaces ONNX's 0 ("as in the input", unless `allow_zero`) and one -1 ("what is left").
Shape resolve_reshape(Extents wanted, const Shape& from, bool allow_zero) {
  const auto refuse_shape = [&] {
    refuse(fmt::format("cannot reshape {} to [{}]", to_string(from), fmt::join(wanted, ",")));
  };
  std::int64_t known = 1, unknown = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !allow_zero) {
      if (static_cast<int>(i) >= from.rank()) refuse_shape();
      wanted[i] = from[static_cast<int>(i)];
    }
    if (wanted[i] < -1 || (wanted[i] == -1 && unknown >= 0)) refuse_shape();
    if (wanted[i] == -1)
      unknown = static_cast<std::int64_t>(i);
    else if (__builtin_mul_overflow(known, wanted[i], &known))
      refuse_shape();
  }
  if (unknown >= 0) {
    if (known == 0 || from.element_count() % known) refuse_shape();
    wanted[static_cast<std::size_t>(unknown)] = from.element_count() / known;
  } else if (known != from.element_count()) {
    refuse_shape();
  }
  return Shape(wanted);
}

std::vector<ValueType> infer_reshape(const InferContext& context) {
  const bool allow_zero = context.attributes.integer("allowzero", 0) != 0;
  const ValueType& data = context.input(0);
  return {{data.element, resolve_reshape(context.known_integers(1, "input shape"), data.shape, allow_zero)}};
}

std::vector<ValueType> infer_flatten(const InferContext& context) {
  const Shape& shape = context.input(0).shape;
  const std::int64_t given = context.attributes.integer("axis", 1);
  const int axis = given == shape.rank() ? shape.rank() : checked_axis(given, shape.rank());
  const std::int64_t outer =
      std::accumulate(shape.begin(), shape.begin() + axis, std::int64_t{1}, std::multiplies<>());
  const std::int64_t inner =
      std::accumulate(shape.begin() + axis, shape.end(), std::int64_t{1}, std::multiplies<>());
  return {{context.input(0).element, Shape{outer, inner}}};
}

std::vector<ValueType> infer_squeeze(const InferContext& context) {
  const Shape& shape = context.input(0).shape;
  std::vector<int> axes;
  if (context.has(1)) {
    axes = checked_axes(context.known_integers(1, "input axes"), shape.rank());
    for (int axis : axes)
      require(shape[axis] == 1,
              fmt::format("axis {} of {} has extent {}, expected 1", axis, to_string(shape), shape[axis]));
  } else {
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] == 1) axes.push_back(axis);
  }
  Extents kept;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!std::ranges::binary_search(axes, axis)) kept.push_back(shape[axis]);
  return {{context.input(0).element, Shape(kept)}};
}

std::vector<ValueType> infer_unsqueeze(const InferContext& context) {
  const Shape& shape = context.input(0).shape;
  const Extents given = context.known_integers(1, "input axes");
  const int rank = shape.rank() + static_cast<int>(given.size());
  const std::vector<int> axes = checked_axes(given, rank);
  Extents extents = shape.extents();
  for (int axis : axes) extents.insert(extents.begin() + axis, 1);
  return {{context.input(0).element, Shape(extents)}};
}

std::vector<ValueType> infer_expand(const InferContext& context) {
  const Shape wanted = checked_shape(context.known_integers(1, "input shape"));
  return {{context.input(0).element, checked_broadcast(context.input(0).shape, wanted, "input and target")}};
}

void evaluate_expand(const EvaluateContext& context) {
  const Shape& to = context.output(0).shape();
  copy_strided(context.input(0), to, broadcast_strides(context.input(0).shape(), to), 0, context.output(0));
}

std::vector<Var> vjp_expand(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  result[0] = sum_to(cotangents[0], context.inputs[0].shape());
  return result;
}

std::vector<Var> jvp_expand(const DerivativeContext& context, std::span<const Var> tangents) {
  return {expand_to(tangents[0], context.outputs[0].shape())};
}

Definition view_definition(std::string_view name, int opset, int max_inputs, std::string_view attributes,
                           decltype(Definition::infer) infer) {
  return {.name = name,
          .since_opset = opset,
          .min_inputs = name == "Squeeze" ? 1 : max_inputs,
          .max_inputs = max_inputs,
          .traits = {.elements = Elements::any,
                     .work = WorkKind::view,
                     .batch = batch::view,
                     .constants = Variation::as_moved,
                     .attributes = attributes,
                     .f32_since = 13,
                     .view = View::regroups,
                     .precision = Precision::follows,
                     .moves_bytes = true},
          .infer = infer,
          .flops = no_flops,
          .evaluate = copy_elements,
          .vjp = vjp_view,
          .jvp = jvp_view,
          .shape_inputs = max_inputs == 2 ? 0b10u : 0u};
}

}  // namespace

Var reshape(Var x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const bool empty = shape.element_count() == 0;  // extents of 0 mean themselves
  return x.builder().node1("Reshape", {x, x.builder().integers(shape.extents())},
                           empty ? Attributes{{"allowzero", std::int64_t{1}}} : Attributes{});
}
Var flatten(Var x, std::int64_t axis) { return x.builder().node1("Flatten", {x}, {{"axis", axis}}); }
Var squeeze(Var x, const Extents& axes) {
  return x.builder().node1("Squeeze", {x, x.builder().integers(axes)});
}
Var unsqueeze(Var x, const Extents& axes) {
  return x.builder().node1("Unsqueeze", {x, x.builder().integers(axes)});
}
Var expand(Var x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return x.builder().node1("Expand", {x, x.builder().integers(shape.extents())});
}

std::span<const Definition> view_operators() {
  static const Definition definitions[] = {
      view_definition("Reshape", 14, 2, "allowzero shape", infer_reshape),
      view_definition("Flatten", 13, 1, "axis", infer_flatten),
      view_definition("Squeeze", 13, 2, "axes", infer_squeeze),
      view_definition("Unsqueeze", 13, 2, "axes", infer_unsqueeze),
      {.name = "Expand",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::movement,
                  .batch = batch::expand,
                  .constants = Variation::as_expanded,
                  .precision = Precision::follows},
       .infer = infer_expand,
       .flops = no_flops,
       .evaluate = evaluate_expand,
       .vjp = vjp_expand,
       .jvp = jvp_expand,
       .shape_inputs = 0b10u},
  };
  return definitions;
}

}  // namespace superstep::op
