// Pad. Every mode is a choice of a source position for each position of an axis; the transposes of the
// modes that repeat elements are therefore Gather's, axis by axis.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::string mode_of(const Attributes& attributes) {
  const std::string mode = attributes.text("mode", "constant");
  require(mode == "constant" || mode == "edge" || mode == "reflect" || mode == "wrap",
          fmt::format("attribute 'mode' is '{}', expected constant, edge, reflect or wrap", mode));
  return mode;
}

// Pads of every axis, begins then ends, from the inputs pads and axes.
Extents all_pads(const Shape& shape, const Extents& given, const Extents* axes) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  const std::size_t named = axes ? axes->size() : rank;
  require(given.size() == 2 * named,
          fmt::format("input pads has {} elements, expected {}", given.size(), 2 * named));
  if (!axes) return given;
  checked_axes(*axes, shape.rank(), "input axes");
  Extents pads(2 * rank, 0);
  for (std::size_t i = 0; i < named; ++i) {
    const auto axis = static_cast<std::size_t>(checked_axis((*axes)[i], shape.rank()));
    pads[axis] = given[i];
    pads[axis + rank] = given[i + named];
  }
  return pads;
}

std::vector<ValueType> infer_pad(const InferContext& context) {
  const ValueType& x = context.input(0);
  const std::string mode = mode_of(context.attributes);
  const Extents axes = context.has(3) ? context.known_integers(3, "input axes") : Extents{};
  const Extents pads =
      all_pads(x.shape, context.known_integers(1, "input pads"), context.has(3) ? &axes : nullptr);
  if (context.has(2)) {
    require_scalar(context, 2, "constant_value");
    require_same_element(context, 2, "constant_value", 0, "data");
  }
  const auto rank = static_cast<std::size_t>(x.shape.rank());
  Extents extents = x.shape.extents();
  for (std::size_t axis = 0; axis < rank; ++axis) {
    extents[axis] += pads[axis] + pads[axis + rank];
    require(extents[axis] >= 0, fmt::format("pads {} and {} cut more than axis {} of {} has", pads[axis],
                                            pads[axis + rank], axis, to_string(x.shape)));
    require(mode == "constant" || extents[axis] == 0 || x.shape[static_cast<int>(axis)] > 0,
            fmt::format("axis {} is empty: there is nothing to pad with", axis));
  }
  return {{x.element, Shape(extents)}};
}

std::int64_t modulo(std::int64_t a, std::int64_t b) { return (a % b + b) % b; }

// Where position `i` (0 is the first element of the input) takes its element from; -1: the constant.
std::int64_t source_position(std::int64_t i, std::int64_t extent, const std::string& mode) {
  if (i >= 0 && i < extent) return i;
  if (mode == "edge") return std::clamp<std::int64_t>(i, 0, extent - 1);
  if (mode == "wrap") return modulo(i, extent);
  if (mode == "constant") return -1;
  if (extent == 1) return 0;
  const std::int64_t period = 2 * (extent - 1), phase = modulo(i, period);
  return std::min(phase, period - phase);
}

Extents sources(const Shape& shape, const Extents& pads, int axis, const std::string& mode) {
  const auto a = static_cast<std::size_t>(axis), rank = static_cast<std::size_t>(shape.rank());
  Extents result;
  for (std::int64_t i = -pads[a]; i < shape[axis] + pads[a + rank]; ++i)
    result.push_back(source_position(i, shape[axis], mode));
  return result;
}

void evaluate_pad(const EvaluateContext& context) {
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const Extents axes = context.has(3) ? integers_of(context.input(3)) : Extents{};
  const Extents pads = all_pads(x.shape(), integers_of(context.input(1)), context.has(3) ? &axes : nullptr);
  const Extents strides = x.shape().row_major_strides();
  // Offsets of the elements taken, built axis by axis; -1 once any axis lies outside.
  Extents offsets = {0};
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    const Extents positions = sources(x.shape(), pads, axis, mode_of(context.attributes));
    Extents next;
    next.reserve(offsets.size() * positions.size());
    for (std::int64_t offset : offsets)
      for (std::int64_t position : positions)
        next.push_back(
            offset < 0 || position < 0 ? -1 : offset + position * strides[static_cast<std::size_t>(axis)]);
    offsets = std::move(next);
  }
  dispatch(x.type(), [&]<class T>() {
    const T value = context.has(2) ? context.input(2).as<T>()[0] : T{};
    const auto from = x.as<T>();
    auto to = y.as<T>();
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = offsets[i] < 0 ? value : from[static_cast<std::size_t>(offsets[i])];
  });
}

Extents constant_pads(const DerivativeContext& context) {
  const Extents axes = context.has(3) ? constant_integers(context.inputs[3]) : Extents{};
  return all_pads(context.inputs[0].shape(), constant_integers(context.inputs[1]),
                  context.has(3) ? &axes : nullptr);
}

Extents negated(Extents values) {
  for (std::int64_t& value : values) value = -value;
  return values;
}

// The transpose of padding by repetition along one axis: the sum over the positions with one source.
Var gathered_back(Var t, int axis, const Extents& positions, std::int64_t extent) {
  Var total;
  // Position j of the k-th table holds the k-th place that copies element j, or the zero put at the end.
  std::vector<Extents> tables;
  std::vector<std::size_t> filled(static_cast<std::size_t>(extent), 0);
  const auto last = static_cast<std::int64_t>(positions.size());
  for (std::int64_t i = 0; i < last; ++i) {
    const auto j = static_cast<std::size_t>(positions[static_cast<std::size_t>(i)]);
    if (filled[j] == tables.size()) tables.emplace_back(static_cast<std::size_t>(extent), last);
    tables[filled[j]++][j] = i;
  }
  Extents one_zero(static_cast<std::size_t>(2 * t.shape().rank()), 0);
  one_zero[static_cast<std::size_t>(t.shape().rank() + axis)] = 1;
  const Var with_zero = pad(t, one_zero);
  for (const Extents& table : tables)
    total = sum_valid(total, gather(with_zero, t.builder().integers(table), axis));
  return total;
}

// What was there before padding: a slice, which moves nothing, unless the padding cut something off.
Var without_padding(Var t, const Extents& pads, const Shape& shape) {
  if (std::ranges::any_of(pads, [](std::int64_t pad) { return pad < 0; })) return pad(t, negated(pads));
  Extents starts, ends, axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (t.shape()[axis] == shape[axis]) continue;
    const std::int64_t before = pads[static_cast<std::size_t>(axis)];
    starts.push_back(before);
    ends.push_back(before + shape[axis]);
    axes.push_back(axis);
  }
  return axes.empty() ? t : slice(t, starts, ends, axes);
}

Var transposed(const DerivativeContext& context, Var t) {
  const std::string mode = mode_of(context.attributes);
  const Extents pads = constant_pads(context);
  const Shape& shape = context.inputs[0].shape();
  if (mode == "constant") return without_padding(t, pads, shape);
  for (int axis = 0; axis < shape.rank(); ++axis)
    t = gathered_back(t, axis, sources(shape, pads, axis, mode), shape[axis]);
  return t;
}

std::vector<Var> vjp_pad(const DerivativeContext& context, std::span<const Var> cotangents,
                         const std::vector<bool>& wanted) {
  std::vector<Var> result = no_cotangents(context);
  if (wanted[0]) result[0] = transposed(context, cotangents[0]);
  if (context.has(2) && wanted[2]) {
    const Var inside = transposed(context, cotangents[0]);
    const Var total = sum_to(cotangents[0], {}) - sum_to(inside, {});
    result[2] = expand_to(total, context.inputs[2].shape());
  }
  return result;
}

std::vector<Var> jvp_pad(const DerivativeContext& context, std::span<const Var> tangents) {
  std::vector<Var> inputs = context.inputs;
  for (std::size_t i : {0u, 2u})
    if (context.has(i))
      inputs[i] = tangents[i].valid() ? tangents[i] : context.builder.zeros_like(context.inputs[i]);
  return context.builder.node("Pad", inputs, context.attributes);
}

// Modes that repeat elements gather them, axis by axis; of the others the pads of all axes are written out.
std::vector<Var> decompose_pad(const DerivativeContext& context) {
  Var x = context.inputs[0];
  const std::string mode = mode_of(context.attributes);
  const Extents pads = constant_pads(context);
  if (mode == "constant") {
    const Var value = context.has(2) ? context.inputs[2] : Var();
    return {context.builder.node1("Pad", {x, context.builder.integers(pads), value}, {{"mode", mode}})};
  }
  const auto rank = static_cast<std::size_t>(x.shape().rank());
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (pads[axis] == 0 && pads[axis + rank] == 0) continue;
    const int along = static_cast<int>(axis);
    x = gather(x, context.builder.integers(sources(x.shape(), pads, along, mode)), along);
  }
  return {x};
}

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

}  // namespace

Var pad(Var x, const Extents& pads, double value, const std::string& mode) {
  const Var constant = value != 0 ? constant_like(x, value) : Var();
  return x.builder().node1("Pad", {x, x.builder().integers(pads), constant}, {{"mode", mode}});
}

std::span<const Definition> pad_operators() {
  static const Definition definitions[] = {{.name = "Pad",
                                            .since_opset = 19,
                                            .min_inputs = 2,
                                            .max_inputs = 4,
                                            .traits = {.elements = Elements::any,
                                                       .work = WorkKind::movement,
                                                       .batch = batch::pad,
                                                       .attributes = "mode paddings pads value",
                                                       .f32_since = 13,
                                                       .precision = Precision::follows},
                                            .infer = infer_pad,
                                            .flops = no_flops,
                                            .evaluate = evaluate_pad,
                                            .vjp = vjp_pad,
                                            .jvp = jvp_pad,
                                            .decompose = decompose_pad,
                                            .shape_inputs = 0b1010u}};
  return definitions;
}

}  // namespace superstep::op
