// Views, copies and what is made of shapes alone.
#include <algorithm>
#include <numeric>

#include "superstep/op/core/evaluate.h"
#include "superstep/target/pjrt/stablehlo/named.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

Values reshape(const Site& s) { return {s.emit.reshape(s.in(0), s.out_shape())}; }
Values expand(const Site& s) { return {s.emit.expand(s.in(0), s.out_shape())}; }

Values transpose(const Site& s) {
  Extents reversed(static_cast<std::size_t>(s.in(0).rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {s.emit.transpose(s.in(0), s.attributes().integers("perm", reversed))};
}

Values concatenate(const Site& s) { return {s.emit.concatenate(s.inputs, s.axis(0, s.in(0).rank()))}; }

Values split(const Site& s) {
  const int axis = s.axis(0, s.in(0).rank());
  Values parts;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < s.node.outputs.size(); ++i) {
    // One that is there and nobody reads has an extent all the same; one that is left out has none.
    if (!s.node.outputs[i].valid()) throw Error(ErrorCode::unsupported, "every output of Split must be kept");
    const std::int64_t end = begin + s.out_shape(i)[axis];
    parts.push_back(s.wants(i) ? s.emit.cut(s.in(0), axis, begin, end) : Value());
    begin = end;
  }
  return parts;
}

// One axis of a slice by Python's rules: `length` elements from `start` on.
struct Cut {
  std::int64_t start = 0, step = 1, length = 0;
};
Cut cut_of(std::int64_t start, std::int64_t step, std::int64_t extent, std::int64_t length) {
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const std::int64_t from = start < 0 ? std::max(start, -extent - 1) + extent : start;
  // A step past the extent takes one element.
  const std::int64_t pace =
      std::clamp(step, -std::max<std::int64_t>(extent, 1), std::max<std::int64_t>(extent, 1));
  return {std::clamp(from, low, high), pace, length};
}

Values slice(const Site& s) {
  const Value x = s.in(0);
  const Extents starts = s.integers(1, "starts");
  Extents axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (s.has(3)) axes = s.integers(3, "axes");
  if (s.has(4)) steps = s.integers(4, "steps");
  Extents begin(static_cast<std::size_t>(x.rank()), 0), end = x.shape().extents(), pace(begin.size(), 1),
                                                        reversed;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = normalize_axis(axes[i], x.rank());
    const auto a = static_cast<std::size_t>(axis);
    const Cut cut = cut_of(starts[i], steps[i], x.shape()[axis], s.out_shape()[axis]);
    const std::int64_t step = std::abs(cut.step);
    pace[a] = step;
    begin[a] = cut.length == 0 ? 0 : cut.step > 0 ? cut.start : cut.start - (cut.length - 1) * step;
    end[a] = cut.length == 0 ? 0 : begin[a] + (cut.length - 1) * step + 1;
    if (cut.step < 0 && cut.length > 1) reversed.push_back(axis);
  }
  return {s.emit.reverse(s.emit.slice(x, begin, end, pace), reversed)};
}

// --- padding

Extents pads_of(const Site& s) {
  const auto rank = static_cast<std::size_t>(s.in(0).rank());
  const Extents given = s.integers(1, "pads");
  if (!s.has(3)) return given;
  const Extents axes = s.integers(3, "axes");
  Extents pads(2 * rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normalize_axis(axes[i], s.in(0).rank()));
    pads[axis] = given[i];
    pads[axis + rank] = given[i + axes.size()];
  }
  return pads;
}

// Which element stands at position i, 0 being the first of the input.
std::int64_t source(std::int64_t i, std::int64_t extent, const std::string& mode) {
  const auto modulo = [](std::int64_t a, std::int64_t b) { return (a % b + b) % b; };
  if (mode == "edge" || extent == 1) return std::clamp<std::int64_t>(i, 0, extent - 1);
  if (mode == "wrap") return modulo(i, extent);
  const std::int64_t period = 2 * (extent - 1), phase = modulo(i, period);
  return std::min(phase, period - phase);
}

Values pad(const Site& s) {
  const std::string mode = s.attributes().text("mode", "constant");
  const auto rank = static_cast<std::size_t>(s.in(0).rank());
  const Extents pads = pads_of(s);
  const Extents low(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank)),
      high(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  if (mode == "constant") {
    const Value value = s.has(2) ? s.emit.reshape(s.in(2), Shape{}) : s.emit.splat(s.in(0).element(), {}, 0);
    return {s.emit.pad(s.in(0), value, low, high)};
  }
  Value x = s.in(0);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (low[axis] == 0 && high[axis] == 0) continue;
    const std::int64_t extent = x.shape()[static_cast<int>(axis)];
    Extents sources;
    for (std::int64_t i = -low[axis]; i < extent + high[axis]; ++i)
      sources.push_back(source(i, extent, mode));
    x = s.emit.take(x, sources, static_cast<int>(axis));
  }
  return {x};
}

// --- of shapes

// Evaluated as it stands, whatever the elements of its inputs are.
Values of_shapes(const Site& s) {
  std::vector<Tensor> inputs;
  for (const Value& input : s.inputs)
    inputs.push_back(input.valid() ? Tensor::generated(input.element(), input.shape()) : Tensor());
  std::vector<const Tensor*> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back(s.has(i) ? &inputs[i] : nullptr);
  return {s.emit.constant(op::evaluate_node(s.graph, s.node, given)[0])};
}

Values constant_of_shape(const Site& s) {
  if (!s.attributes().has("value")) return {s.emit.splat(s.out().element, s.out_shape(), 0)};
  const Value value = s.emit.constant(s.attributes().tensor("value").reshaped(Shape{}));
  return {s.emit.broadcast(value, s.out_shape(), {})};
}

}  // namespace

std::span<const Lowering> move_lowerings() {
  static const Lowering table[] = {
      {"Reshape", reshape, Inputs::as_they_are},
      {"Flatten", reshape, Inputs::as_they_are},
      {"Squeeze", reshape, Inputs::as_they_are},
      {"Unsqueeze", reshape, Inputs::as_they_are},
      {"Expand", expand, Inputs::as_they_are},
      {"Transpose", transpose, Inputs::as_they_are},
      {"Concat", concatenate, Inputs::as_they_are},
      {"Split", split, Inputs::as_they_are},
      {"Slice", slice, Inputs::as_they_are},
      {"Pad", pad, Inputs::as_they_are},
      {"Shape", of_shapes, Inputs::as_they_are},
      {"Size", of_shapes, Inputs::as_they_are},
      {"ConstantOfShape", constant_of_shape, Inputs::as_they_are},
      {"RandomUniformLike", of_shapes, Inputs::as_they_are},
      {"RandomNormalLike", of_shapes, Inputs::as_they_are},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
