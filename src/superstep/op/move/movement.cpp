#include "superstep/op/move/movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/strided.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

std::vector<int> permutation_of(const Attributes& attributes, int rank) {
  Extents reversed(static_cast<std::size_t>(rank));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const Extents given = attributes.integers("perm", reversed);
  require(static_cast<int>(given.size()) == rank,
          fmt::format("attribute 'perm' names {} axes, input data has {}", given.size(), rank));
  checked_axes(given, rank, "attribute 'perm'");
  std::vector<int> result;
  for (std::int64_t axis : given) result.push_back(checked_axis(axis, rank));
  return result;
}

std::vector<ValueType> infer_transpose(const InferContext& context) {
  const Shape& shape = context.input(0).shape;
  const auto permutation = permutation_of(context.attributes, shape.rank());
  return {{context.input(0).element, Shape(pick(shape.extents(), permutation))}};
}

void evaluate_transpose(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const auto strides = pick(shape.row_major_strides(), permutation_of(context.attributes, shape.rank()));
  copy_strided(context.input(0), context.output(0).shape(), strides, 0, context.output(0));
}

std::vector<Var> vjp_transpose(const DerivativeContext& context, std::span<const Var> cotangents,
                               const std::vector<bool>&) {
  const auto permutation = permutation_of(context.attributes, cotangents[0].shape().rank());
  Extents inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  return {transpose(cotangents[0], inverse)};
}

std::vector<Var> jvp_transpose(const DerivativeContext& context, std::span<const Var> tangents) {
  return {context.builder.node1("Transpose", {tangents[0]}, context.attributes)};
}

int concat_axis(const Attributes& attributes, const Shape& first) {
  return checked_axis(attributes.integer("axis"), first.rank(), "attribute 'axis'");
}

std::vector<ValueType> infer_concat(const InferContext& context) {
  const ValueType& first = context.input(0);
  const int axis = concat_axis(context.attributes, first.shape);
  Extents extents = first.shape.extents();
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    const std::string name = fmt::format("inputs[{}]", i);
    require_same_element(context, i, name, 0, "inputs[0]");
    Extents next = context.input(i).shape.extents();
    const std::int64_t length =
        axis < static_cast<int>(next.size()) ? next[static_cast<std::size_t>(axis)] : 0;
    if (axis < static_cast<int>(next.size())) next[static_cast<std::size_t>(axis)] = first.shape[axis];
    require(next == first.shape.extents(),
            fmt::format("input {} is {}, which does not join {} along axis {}", name,
                        to_string(context.input(i)), to_string(first), axis));
    extents[static_cast<std::size_t>(axis)] += length;
  }
  return {{first.element, Shape(extents)}};
}

// Elements before (as a count of blocks) and after (as a block's length for one step of `axis`).
struct Blocks {
  std::int64_t outer, inner;
};
Blocks blocks_of(const Shape& shape, int axis) {
  const auto product = [](auto first, auto last) {
    return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
  };
  return {product(shape.begin(), shape.begin() + axis), product(shape.begin() + axis + 1, shape.end())};
}

void evaluate_concat(const EvaluateContext& context) {
  Tensor& y = context.output(0);
  const int axis = concat_axis(context.attributes, y.shape());
  const auto [outer, inner] = blocks_of(y.shape(), axis);
  const std::size_t size = size_in_bytes(y.type());
  std::byte* target = y.bytes();
  for (std::int64_t block = 0; block < outer; ++block)
    for (const Tensor* x : context.inputs) {
      const std::size_t bytes = static_cast<std::size_t>(x->shape()[axis] * inner) * size;
      std::memcpy(target, x->bytes() + static_cast<std::size_t>(block) * bytes, bytes);
      target += bytes;
    }
}

std::vector<Var> vjp_concat(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>& wanted) {
  const int axis = concat_axis(context.attributes, context.outputs[0].shape());
  std::vector<Var> result(context.inputs.size());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t end = begin + context.inputs[i].shape()[axis];
    if (wanted[i]) result[i] = slice(cotangents[0], {begin}, {end}, {axis});
    begin = end;
  }
  return result;
}

std::vector<Var> jvp_concat(const DerivativeContext& context, std::span<const Var> tangents) {
  std::vector<Var> parts(tangents.begin(), tangents.end());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].valid()) parts[i] = context.builder.zeros_like(context.inputs[i]);
  return {concat(parts, context.attributes.integer("axis"))};
}

// Lengths from the input `split`, from the attribute num_outputs (opset 18), or equal over the outputs.
Extents split_lengths(const InferContext& context, std::int64_t extent) {
  if (context.has(1)) return context.known_integers(1, "input split");
  const std::int64_t parts =
      context.attributes.integer("num_outputs", static_cast<std::int64_t>(context.output_count));
  require(parts > 0, "attribute 'num_outputs' must be positive");
  const std::int64_t length = (extent + parts - 1) / parts;
  Extents lengths(static_cast<std::size_t>(parts), length);
  lengths.back() = extent - length * (parts - 1);
  return lengths;
}

std::vector<ValueType> infer_split(const InferContext& context) {
  const ValueType& x = context.input(0);
  const int axis = checked_axis(context.attributes.integer("axis", 0), x.shape.rank(), "attribute 'axis'");
  const Extents lengths = split_lengths(context, x.shape[axis]);
  require(std::ranges::all_of(lengths, [](std::int64_t n) { return n >= 0; }) &&
              std::reduce(lengths.begin(), lengths.end()) == x.shape[axis],
          fmt::format("lengths [{}] do not add up to the extent {} of axis {}", fmt::join(lengths, ","),
                      x.shape[axis], axis));
  std::vector<ValueType> types;
  for (std::int64_t length : lengths) {
    Extents extents = x.shape.extents();
    extents[static_cast<std::size_t>(axis)] = length;
    types.push_back({x.element, Shape(extents)});
  }
  return types;
}

void evaluate_split(const EvaluateContext& context) {
  const Tensor& x = context.input(0);
  const int axis = checked_axis(context.attributes.integer("axis", 0), x.shape().rank());
  const auto strides = x.shape().row_major_strides();
  std::int64_t begin = 0;
  for (Tensor* y : context.outputs) {
    if (!y) throw Error(ErrorCode::unsupported, "every output of Split must be kept");
    copy_strided(x, y->shape(), strides, begin * strides[static_cast<std::size_t>(axis)], *y);
    begin += y->shape()[axis];
  }
}

std::vector<Var> vjp_split(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>&) {
  std::vector<Var> parts(cotangents.begin(), cotangents.end());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].valid()) parts[i] = context.builder.zeros_like(context.outputs[i]);
  std::vector<Var> result = no_cotangents(context);
  result[0] = concat(parts, context.attributes.integer("axis", 0));
  return result;
}

std::vector<Var> jvp_split(const DerivativeContext& context, std::span<const Var> tangents) {
  std::vector<Var> inputs = context.inputs;
  inputs[0] = tangents[0];
  return context.builder.node("Split", inputs, context.attributes, static_cast<int>(context.outputs.size()));
}

std::vector<ValueType> infer_tile(const InferContext& context) {
  const Shape& shape = context.input(0).shape;
  const Extents repeats = context.known_integers(1, "input repeats");
  require(static_cast<int>(repeats.size()) == shape.rank(),
          fmt::format("input repeats has {} elements, expected {}", repeats.size(), shape.rank()));
  Extents extents = shape.extents();
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] *= repeats[i];
  return {{context.input(0).element, checked_shape(extents)}};
}

// [a, b] tiled [2, 3] times is [1, a, 1, b] broadcast to [2, a, 3, b].
Shape interleave(const Extents& outer, const Shape& inner) {
  Extents extents;
  for (int axis = 0; axis < inner.rank(); ++axis) {
    extents.push_back(outer[static_cast<std::size_t>(axis)]);
    extents.push_back(inner[axis]);
  }
  return Shape(extents);
}

Extents repeats_of(const Shape& from, const Shape& to) {
  Extents repeats;
  for (int axis = 0; axis < from.rank(); ++axis) repeats.push_back(from[axis] ? to[axis] / from[axis] : 1);
  return repeats;
}

void evaluate_tile(const EvaluateContext& context) {
  const Shape& from = context.input(0).shape();
  const Extents repeats = repeats_of(from, context.output(0).shape());
  const Shape narrow = interleave(Extents(repeats.size(), 1), from), wide = interleave(repeats, from);
  copy_strided(context.input(0), wide, broadcast_strides(narrow, wide), 0, context.output(0));
}

std::vector<Var> decompose_tile(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Shape& to = context.outputs[0].shape();
  const Extents repeats = repeats_of(x.shape(), to);
  const Var apart = reshape(x, interleave(Extents(repeats.size(), 1), x.shape()));
  return {reshape(expand(apart, interleave(repeats, x.shape())), to)};
}

std::vector<Var> vjp_tile(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  const Shape& from = context.inputs[0].shape();
  const Extents repeats = repeats_of(from, context.outputs[0].shape());
  const Shape narrow = interleave(Extents(repeats.size(), 1), from);
  result[0] = reshape(sum_to(reshape(cotangents[0], interleave(repeats, from)), narrow), from);
  return result;
}

std::vector<Var> jvp_tile(const DerivativeContext& context, std::span<const Var> tangents) {
  return {context.builder.node1("Tile", {tangents[0], context.inputs[1]})};
}

}  // namespace

Var transpose(Var x, const Extents& permutation) {
  return x.builder().node1("Transpose", {x},
                           permutation.empty() ? Attributes{} : Attributes{{"perm", permutation}});
}

Var swap_axes(Var x, std::int64_t a, std::int64_t b) {
  const int rank = x.shape().rank();
  Extents permutation(static_cast<std::size_t>(rank));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[static_cast<std::size_t>(checked_axis(a, rank))],
            permutation[static_cast<std::size_t>(checked_axis(b, rank))]);
  return transpose(x, permutation);
}

Var concat(std::span<const Var> inputs, std::int64_t axis) {
  if (inputs.empty()) throw Error(ErrorCode::bad_graph, "takes one input or more", "Concat");
  return inputs[0].builder().node("Concat", inputs, {{"axis", axis}}).at(0);
}

std::vector<Var> split(Var x, std::int64_t axis, const Extents& lengths) {
  const Var inputs[] = {x, x.builder().integers(lengths)};
  return x.builder().node("Split", inputs, {{"axis", axis}}, static_cast<int>(lengths.size()));
}

Var tile(Var x, const Extents& repeats) {
  return x.builder().node1("Tile", {x, x.builder().integers(repeats)});
}

namespace {

constexpr Definition concat_definition{.name = "Concat",
                                       .since_opset = 13,
                                       .max_inputs = -1,
                                       .traits = {.elements = Elements::any,
                                                  .work = WorkKind::movement,
                                                  .batch = batch::concat,
                                                  .attributes = "axis",
                                                  .precision = Precision::follows,
                                                  .moves_bytes = true},
                                       .infer = infer_concat,
                                       .flops = no_flops,
                                       .evaluate = evaluate_concat,
                                       .vjp = vjp_concat,
                                       .jvp = jvp_concat};

}  // namespace

std::span<const Definition> movement_operators() {
  static const Definition definitions[] = {
      {.name = "Transpose",
       .since_opset = 13,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::movement,
                  .batch = batch::transpose,
                  .constants = Variation::as_moved,
                  .attributes = "perm",
                  .view = View::permutes,
                  .precision = Precision::follows,
                  .moves_bytes = true},
       .infer = infer_transpose,
       .flops = no_flops,
       .evaluate = evaluate_transpose,
       .vjp = vjp_transpose,
       .jvp = jvp_transpose},
      concat_definition,
      {.name = "Split",
       .since_opset = 18,
       .max_inputs = 2,
       .max_outputs = -1,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::movement,
                  .batch = batch::split,
                  .attributes = "axis num_outputs split",
                  .f32_since = 13,
                  .precision = Precision::follows},
       .infer = infer_split,
       .flops = no_flops,
       .evaluate = evaluate_split,
       .vjp = vjp_split,
       .jvp = jvp_split,
       .shape_inputs = 0b10u},
      {.name = "Tile",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::movement,
                  .batch = batch::same_extent,
                  .constants = Variation::as_moved,
                  .precision = Precision::follows},
       .infer = infer_tile,
       .flops = no_flops,
       .evaluate = evaluate_tile,
       .vjp = vjp_tile,
       .jvp = jvp_tile,
       .decompose = decompose_tile,
       .shape_inputs = 0b10u},
  };
  return definitions;
}

}  // namespace superstep::op
