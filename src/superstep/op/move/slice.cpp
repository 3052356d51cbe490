// Slice. Its transpose places the elements back among zeros: for steps of one that is Pad; for others the
// elements are first spread out with zeros between them, then padded.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/strided.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

struct Cut {
  std::int64_t start = 0, step = 1, length = 0;
};

// Python's rules for one axis of the given extent; but one that goes backwards from before the first element
// takes that one, as ONNX's text has it.
Cut resolve_cut(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent) {
  require(step != 0, "a step of 0 was given");
  if (extent == 0) return {};
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const auto clamped = [&](std::int64_t position) {
    return std::clamp(position < 0 ? position + extent : position, low, high);
  };
  const std::int64_t from = std::max<std::int64_t>(clamped(start), 0), to = clamped(end);
  const std::int64_t span = step > 0 ? to - from : from - to;
  // |step| without overflow: a step past the extent takes one element.
  const std::int64_t pace =
      std::min(std::max<std::int64_t>(extent, 1), step > 0 ? step : -std::max(step, -extent - 1));
  return {from, step > 0 ? pace : -pace, span > 0 ? (span + pace - 1) / pace : 0};
}

// One cut for every axis of `shape`; `integers(i)` gives input i's elements.
template <class Integers>
std::vector<Cut> cuts_of(const Shape& shape, bool has_axes, bool has_steps, Integers&& integers) {
  const Extents starts = integers(1), ends = integers(2);
  Extents axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (has_axes) axes = integers(3);
  if (has_steps) steps = integers(4);
  require(
      ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
      fmt::format("inputs starts, ends, axes and steps have {}, {}, {} and {} elements, expected the same",
                  starts.size(), ends.size(), axes.size(), steps.size()));
  checked_axes(axes, shape.rank(), "input axes");
  std::vector<Cut> cuts;
  for (std::int64_t extent : shape) cuts.push_back({0, 1, extent});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = checked_axis(axes[i], shape.rank());
    cuts[static_cast<std::size_t>(axis)] = resolve_cut(starts[i], ends[i], steps[i], shape[axis]);
  }
  return cuts;
}

std::vector<ValueType> infer_slice(const InferContext& context) {
  static constexpr const char* names[] = {"data", "input starts", "input ends", "input axes", "input steps"};
  const auto cuts = cuts_of(context.input(0).shape, context.has(3), context.has(4),
                            [&](std::size_t i) { return context.known_integers(i, names[i]); });
  Extents extents;
  for (const Cut& cut : cuts) extents.push_back(cut.length);
  return {{context.input(0).element, Shape(extents)}};
}

void evaluate_slice(const EvaluateContext& context) {
  const Tensor& x = context.input(0);
  const auto cuts = cuts_of(x.shape(), context.has(3), context.has(4),
                            [&](std::size_t i) { return integers_of(context.input(i)); });
  Extents strides = x.shape().row_major_strides();
  std::int64_t start = 0;
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    start += cuts[axis].start * strides[axis];
    strides[axis] *= cuts[axis].step;
  }
  copy_strided(x, context.output(0).shape(), strides, start, context.output(0));
}

// x with `step` - 1 zeros after every element of `axis` but the last.
Var spread(Var x, int axis, std::int64_t step) {
  const std::int64_t length = x.shape()[axis];
  if (step == 1 || length <= 1) return x;
  Extents split = x.shape().extents(), pads(2 * split.size() + 2, 0), joined = split;
  split.insert(split.begin() + axis + 1, 1);
  pads[split.size() + static_cast<std::size_t>(axis) + 1] = step - 1;
  joined[static_cast<std::size_t>(axis)] = length * step;
  const Var padded = reshape(pad(reshape(x, Shape(split)), pads), Shape(joined));
  return slice(padded, {0}, {(length - 1) * step + 1}, {axis});
}

Var reversed(Var x, int axis) {
  return slice(x, {-1}, {std::numeric_limits<std::int64_t>::min()}, {axis}, {-1});
}

std::vector<Var> vjp_slice(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  const Shape& shape = context.inputs[0].shape();
  const auto cuts = cuts_of(shape, context.has(3), context.has(4),
                            [&](std::size_t i) { return constant_integers(context.inputs[i]); });
  if (cotangents[0].shape().element_count() == 0) return result;
  Var t = cotangents[0];
  Extents before, after;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Cut& cut = cuts[static_cast<std::size_t>(axis)];
    const std::int64_t span = (cut.length - 1) * std::abs(cut.step);
    if (cut.step < 0) t = reversed(t, axis);
    t = spread(t, axis, std::abs(cut.step));
    before.push_back(cut.step > 0 ? cut.start : cut.start - span);
    after.push_back(shape[axis] - before.back() - span - 1);
  }
  before.insert(before.end(), after.begin(), after.end());
  const bool all = std::ranges::all_of(before, [](std::int64_t n) { return n == 0; });
  result[0] = all ? t : pad(t, before);
  return result;
}

std::vector<Var> jvp_slice(const DerivativeContext& context, std::span<const Var> tangents) {
  std::vector<Var> inputs = context.inputs;
  inputs[0] = tangents[0];
  return context.builder.node("Slice", inputs, context.attributes);
}

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

}  // namespace

Var slice(Var x, const Extents& starts, const Extents& ends, const Extents& axes, const Extents& steps) {
  Builder& builder = x.builder();
  Extents all = axes;
  if (axes.empty()) {
    all.resize(starts.size());
    std::iota(all.begin(), all.end(), 0);
  }
  const Var step = steps.empty() ? Var() : builder.integers(steps);
  return builder.node1("Slice",
                       {x, builder.integers(starts), builder.integers(ends), builder.integers(all), step});
}

std::span<const Definition> slice_operators() {
  static const Definition definitions[] = {{.name = "Slice",
                                            .since_opset = 13,
                                            .min_inputs = 3,
                                            .max_inputs = 5,
                                            .traits = {.elements = Elements::any,
                                                       .work = WorkKind::movement,
                                                       .batch = batch::slice,
                                                       .attributes = "axes ends starts",
                                                       .precision = Precision::follows},
                                            .infer = infer_slice,
                                            .flops = no_flops,
                                            .evaluate = evaluate_slice,
                                            .vjp = vjp_slice,
                                            .jvp = jvp_slice,
                                            .shape_inputs = 0b11110u}};
  return definitions;
}

}  // namespace superstep::op
