// TopK, OneHot, and the operators whose result's shape depends on values: NonZero, Compress and Unique, which
// are taken only where those values are known when the graph is compiled.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/cumulative.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::vector<ValueType> infer_top_k(const InferContext& context) {
  require_numeric(context, 0, "X");
  const ValueType& x = context.input(0);
  const int axis = checked_axis(context.attributes.integer("axis", -1), x.shape.rank(), "attribute 'axis'");
  const Extents k = context.known_integers(1, "input K");
  require(k.size() == 1 && k[0] >= 0 && k[0] <= x.shape[axis],
          fmt::format("input K is [{}], expected one number from 0 to {}", fmt::join(k, ","), x.shape[axis]));
  Extents extents = x.shape.extents();
  extents[static_cast<std::size_t>(axis)] = k[0];
  return {{x.element, Shape(extents)}, {ElementType::i64, Shape(extents)}};
}

void evaluate_top_k(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const int axis = checked_axis(context.attributes.integer("axis", -1), shape.rank());
  const bool largest = context.attributes.integer("largest", 1) != 0;
  const std::int64_t k = integer_of(context.input(1)), count = shape[axis];
  Extents strides = shape.row_major_strides(), outer = shape.extents(), result = shape.extents();
  const std::int64_t step = strides[static_cast<std::size_t>(axis)];
  outer[static_cast<std::size_t>(axis)] = 1;
  result[static_cast<std::size_t>(axis)] = k;
  const Extents result_strides = Shape(result).row_major_strides();
  std::vector<std::int64_t> order(static_cast<std::size_t>(count)), starts;
  for_each_strided(Shape(outer), result_strides, 0,
                   [&](std::int64_t, std::int64_t start) { starts.push_back(start); });
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const std::vector<W> x = widen<W>(context.input(0));
    std::vector<W> values(static_cast<std::size_t>(Shape(result).element_count()));
    std::vector<std::int64_t> indices(values.size());
    for_each_strided(Shape(outer), strides, 0, [&](std::int64_t line, std::int64_t start) {
      const auto at = [&](std::int64_t i) { return x[static_cast<std::size_t>(start + i * step)]; };
      // NaN is larger than any number, as NumPy sorts it.
      const auto before = [&](std::int64_t i, std::int64_t j) {
        const W a = at(i), b = at(j);
        return largest ? !(a <= b) && b == b : !(a >= b) && a == a;
      };
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, before);
      for (std::int64_t i = 0; i < k; ++i) {
        const auto place = static_cast<std::size_t>(starts[static_cast<std::size_t>(line)] + i * step);
        values[place] = at(order[static_cast<std::size_t>(i)]);
        indices[place] = order[static_cast<std::size_t>(i)];
      }
    });
    if (context.wants(0)) narrow(values, context.output(0));
    if (context.wants(1)) narrow(indices, context.output(1));
  });
}

Var indices_of(const DerivativeContext& context) {
  if (context.outputs.size() > 1 && context.outputs[1].valid()) return context.outputs[1];
  return context.builder.node("TopK", std::span(context.inputs), context.attributes, 2).at(1);
}

std::vector<Var> vjp_top_k(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  const Var x = context.inputs[0];
  const Var zeros = constant_of_shape(context.builder, x.element(), x.shape());
  if (cotangents[0].valid())
    result[0] = scatter_elements(zeros, indices_of(context), cotangents[0],
                                 context.attributes.integer("axis", -1), "add");
  return result;
}

std::vector<Var> jvp_top_k(const DerivativeContext& context, std::span<const Var> tangents) {
  std::vector<Var> result(context.outputs.size());
  result[0] = gather_elements(tangents[0], indices_of(context), context.attributes.integer("axis", -1));
  return result;
}

// OneHot: the new axis lies at `axis` of the result.
std::vector<ValueType> infer_one_hot(const InferContext& context) {
  require_numeric(context, 0, "indices");
  require_scalar(context, 1, "depth");
  require_numeric(context, 1, "depth");
  require_shape(context, 2, "values", {2});
  if (!context.constants[1])
    throw Error(ErrorCode::unsupported, "input depth must be known when the graph is compiled");
  Extents extents = context.input(0).shape.extents();
  const int axis = checked_axis(context.attributes.integer("axis", -1), static_cast<int>(extents.size()) + 1,
                                "attribute 'axis'");
  extents.insert(extents.begin() + axis, static_cast<std::int64_t>(context.constants[1]->at(0)));
  return {{context.input(2).element, checked_shape(extents)}};
}

// on where the position equals the index or the index plus the depth.
std::vector<Var> decompose_one_hot(const DerivativeContext& context) {
  const Var values = context.inputs[2];
  const int rank = context.inputs[0].shape().rank() + 1;
  const int axis = checked_axis(context.attributes.integer("axis", -1), rank);
  const std::int64_t depth = context.outputs[0].shape()[axis];
  Extents numbers(static_cast<std::size_t>(depth)), shape(static_cast<std::size_t>(rank), 1);
  std::iota(numbers.begin(), numbers.end(), 0);
  shape[static_cast<std::size_t>(axis)] = depth;
  const Var positions = context.builder.constant(Tensor::from(Shape(shape), numbers));
  const Var indices = unsqueeze(cast(context.inputs[0], ElementType::i64), {axis});
  const Var hot =
      logical_or(equal(indices, positions), equal(indices + static_cast<double>(depth), positions));
  const Var off = reshape(slice(values, {0}, {1}), {}), on = reshape(slice(values, {1}, {2}), {});
  return {where(hot, on, off)};
}

void evaluate_one_hot(const EvaluateContext& context) {
  const Shape& shape = context.output(0).shape();
  const int axis = checked_axis(context.attributes.integer("axis", -1), shape.rank());
  const std::int64_t depth = shape[axis];
  std::int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const std::vector<double> indices = widen<double>(context.input(0));
  dispatch(context.output(0).type(), [&]<class T>() {
    const auto choice = context.input(2).as<T>();
    auto y = context.output(0).as<T>();
    std::ranges::fill(y, choice[0]);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto index = static_cast<std::int64_t>(indices[i]);
      const std::int64_t position = index < 0 ? index + depth : index, flat = static_cast<std::int64_t>(i);
      if (position < 0 || position >= depth) continue;
      y[static_cast<std::size_t>((flat / inner * depth + position) * inner + flat % inner)] = choice[1];
    }
  });
}

const Tensor& known(const InferContext& context, std::size_t input, const char* name) {
  context.input(input);
  if (const Tensor* data = context.constants[input]) return *data;
  throw Error(ErrorCode::unsupported,
              fmt::format("the shape of the result depends on the elements of input {}, which must be known "
                          "when the graph is compiled",
                          name),
              {}, "keep everything and choose by a mask (Where), or cut the model before this operator");
}

// Flat positions of the elements that are not zero.
Extents nonzero_positions(const Tensor& x) {
  Extents positions;
  for (std::int64_t i = 0; i < x.element_count(); ++i)
    if (x.at(i) != 0) positions.push_back(i);
  return positions;
}

std::vector<ValueType> infer_nonzero(const InferContext& context) {
  const auto count = static_cast<std::int64_t>(nonzero_positions(known(context, 0, "X")).size());
  return {{ElementType::i64, Shape{context.input(0).shape.rank(), count}}};
}

void evaluate_nonzero(const EvaluateContext& context) {
  const Extents positions = nonzero_positions(context.input(0));
  const Extents strides = context.input(0).shape().row_major_strides();
  auto y = context.output(0).as<std::int64_t>().begin();
  for (int axis = 0; axis < context.input(0).shape().rank(); ++axis)
    for (std::int64_t position : positions)
      *y++ = position / strides[static_cast<std::size_t>(axis)] % context.input(0).shape()[axis];
}

// Compress: the slices of an axis (or the elements) where the condition is true.
std::vector<ValueType> infer_compress(const InferContext& context) {
  require_boolean(context, 1, "condition");
  require_rank(context, 1, "condition", 1);
  const Shape& shape = context.input(0).shape;
  const auto chosen = static_cast<std::int64_t>(nonzero_positions(known(context, 1, "condition")).size());
  const bool flat = !context.attributes.has("axis");
  const int axis =
      flat ? 0 : checked_axis(context.attributes.integer("axis"), shape.rank(), "attribute 'axis'");
  const std::int64_t extent = flat ? shape.element_count() : shape[axis];
  require(
      context.input(1).shape[0] <= extent,
      fmt::format("input condition has {} elements, expected at most {}", context.input(1).shape[0], extent));
  Extents extents = flat ? Extents{0} : shape.extents();
  extents[static_cast<std::size_t>(axis)] = chosen;
  return {{context.input(0).element, Shape(extents)}};
}

std::vector<Var> decompose_compress(const DerivativeContext& context) {
  const Tensor* condition = constant_data(context.inputs[1]);
  if (!condition) throw Error(ErrorCode::unsupported, "input condition must be constant");
  const Extents chosen = nonzero_positions(*condition);
  Var x = context.inputs[0];
  if (!context.attributes.has("axis")) x = reshape(x, {x.shape().element_count()});
  return {gather(x, context.builder.integers(chosen), context.attributes.integer("axis", 0))};
}

// Unique: distinct slices of an axis (or elements), sorted or in order of appearance.
struct Distinct {
  Extents first, inverse, counts;  // of each distinct slice its first position; of each slice its number
};

Tensor slices_first(const Tensor& x, const Attributes& attributes) {
  if (!attributes.has("axis")) return x.reshaped({x.element_count()});
  const int axis = checked_axis(attributes.integer("axis"), x.shape().rank(), "attribute 'axis'");
  std::vector<int> order = {axis};
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != axis) order.push_back(i);
  Tensor result(x.type(), Shape(pick(x.shape().extents(), order)));
  copy_strided(x, result.shape(), pick(x.shape().row_major_strides(), order), 0, result);
  return result;
}

Distinct distinct_slices(const Tensor& x, const Attributes& attributes) {
  const Tensor rows = slices_first(x, attributes);
  const std::int64_t count = rows.shape()[0], width = count ? rows.element_count() / count : 0;
  Extents order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  Distinct result;
  result.inverse.resize(order.size());
  dispatch_wide(x.type(), [&]<class W>() {
    const std::vector<W> values = widen<W>(rows);
    const auto row = [&](std::int64_t i) {
      return std::span(values).subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width));
    };
    const auto less = [&](std::int64_t i, std::int64_t j) {
      return std::ranges::lexicographical_compare(row(i), row(j));
    };
    std::ranges::stable_sort(order, less);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || less(order[i - 1], order[i])) {
        result.first.push_back(order[i]);
        result.counts.push_back(0);
      }
      ++result.counts.back();
      result.inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(result.first.size()) - 1;
    }
  });
  return result;
}

void sort_by_appearance(Distinct& distinct) {
  std::vector<int> order(distinct.first.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int i) { return distinct.first[static_cast<std::size_t>(i)]; });
  Extents rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    rank[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  for (std::int64_t& number : distinct.inverse) number = rank[static_cast<std::size_t>(number)];
  distinct.first = pick(distinct.first, order);
  distinct.counts = pick(distinct.counts, order);
}

Distinct unique_of(const Tensor& x, const Attributes& attributes) {
  Distinct distinct = distinct_slices(x, attributes);
  if (attributes.integer("sorted", 1) == 0) sort_by_appearance(distinct);
  return distinct;
}

std::vector<ValueType> infer_unique(const InferContext& context) {
  const Distinct distinct = unique_of(known(context, 0, "X"), context.attributes);
  const auto count = static_cast<std::int64_t>(distinct.first.size());
  Extents extents = {count};
  if (context.attributes.has("axis")) {
    extents = context.input(0).shape.extents();
    extents[static_cast<std::size_t>(
        checked_axis(context.attributes.integer("axis"), context.input(0).shape.rank()))] = count;
  }
  const ValueType numbers{ElementType::i64, {count}};
  return {{context.input(0).element, Shape(extents)},
          numbers,
          {ElementType::i64, {static_cast<std::int64_t>(distinct.inverse.size())}},
          numbers};
}

void evaluate_unique(const EvaluateContext& context) {
  const Tensor& x = context.input(0);
  const Distinct distinct = unique_of(x, context.attributes);
  if (context.wants(0)) {
    const int axis = context.attributes.has("axis")
                         ? checked_axis(context.attributes.integer("axis"), x.shape().rank())
                         : 0;
    const Tensor source = context.attributes.has("axis") ? x : x.reshaped({x.element_count()});
    const Extents strides = source.shape().row_major_strides();
    Extents slice_extents = source.shape().extents();
    slice_extents[static_cast<std::size_t>(axis)] = 1;
    // One slice after the other, through offsets of both sides.
    const Extents target_strides = context.output(0).shape().row_major_strides();
    dispatch(x.type(), [&]<class T>() {
      const auto from = source.as<T>();
      auto to = context.output(0).as<T>();
      for (std::size_t i = 0; i < distinct.first.size(); ++i) {
        Extents offsets;
        for_each_strided(Shape(slice_extents), strides,
                         distinct.first[i] * strides[static_cast<std::size_t>(axis)],
                         [&](std::int64_t, std::int64_t offset) { offsets.push_back(offset); });
        for_each_strided(Shape(slice_extents), target_strides,
                         static_cast<std::int64_t>(i) * target_strides[static_cast<std::size_t>(axis)],
                         [&](std::int64_t k, std::int64_t offset) {
                           to[static_cast<std::size_t>(offset)] =
                               from[static_cast<std::size_t>(offsets[static_cast<std::size_t>(k)])];
                         });
      }
    });
  }
  if (context.wants(1)) narrow(distinct.first, context.output(1));
  if (context.wants(2)) narrow(distinct.inverse, context.output(2));
  if (context.wants(3)) narrow(distinct.counts, context.output(3));
}

// Every element of a line finds its place among the k of the result.
double top_k_flops(const Attributes& attributes, std::span<const ValueType> inputs,
                   std::span<const ValueType> outputs) {
  const Shape& shape = inputs[0].shape;
  const int axis = normalize_axis(attributes.integer("axis", -1), shape.rank());
  const auto kept = static_cast<double>(outputs[0].shape[axis]);
  return static_cast<double>(shape.element_count()) * std::log2(std::max(kept, 2.0));
}

// A sort of n elements.
double sort_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  const auto count = static_cast<double>(inputs[0].shape.element_count());
  return count * std::log2(std::max(count, 2.0));
}

}  // namespace

TopK top_k(Var x, std::int64_t k, std::int64_t axis, bool largest) {
  const Var inputs[] = {x, x.builder().integers({k})};
  const auto outputs =
      x.builder().node("TopK", inputs, {{"axis", axis}, {"largest", std::int64_t{largest}}}, 2);
  return {outputs[0], outputs[1]};
}

Var one_hot(Var indices, std::int64_t depth, Var values, std::int64_t axis) {
  const Var depth_input = indices.builder().constant(Tensor::scalar(depth));
  return indices.builder().node1("OneHot", {indices, depth_input, values}, {{"axis", axis}});
}

std::span<const Definition> selection_operators() {
  static const Definition definitions[] = {
      {.name = "TopK",
       .since_opset = 11,
       .min_inputs = 2,
       .max_inputs = 2,
       .max_outputs = 2,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::reduction,
                  .attributes = "axis k largest sorted"},
       .infer = infer_top_k,
       .flops = top_k_flops,
       .evaluate = evaluate_top_k,
       .vjp = vjp_top_k,
       .jvp = jvp_top_k,
       .shape_inputs = 0b10u},
      {.name = "OneHot",
       .since_opset = 11,
       .min_inputs = 3,
       .max_inputs = 3,
       .traits = {.elements = Elements::any, .work = WorkKind::gather, .attributes = "axis"},
       .infer = infer_one_hot,
       .evaluate = evaluate_one_hot,
       .vjp = vjp_through<decompose_one_hot>,
       .jvp = jvp_through<decompose_one_hot>,
       .decompose = decompose_one_hot,
       .shape_inputs = 0b10u},
      {.name = "NonZero",
       .since_opset = 13,
       .traits = {.elements = Elements::any, .work = WorkKind::unsupported},
       .infer = infer_nonzero,
       .evaluate = evaluate_nonzero,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .shape_inputs = 0b1u},
      {.name = "Compress",
       .since_opset = 11,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any, .work = WorkKind::gather, .attributes = "axis"},
       .infer = infer_compress,
       .evaluate = evaluate_through<decompose_compress>,
       .vjp = vjp_through<decompose_compress>,
       .jvp = jvp_through<decompose_compress>,
       .decompose = decompose_compress,
       .shape_inputs = 0b10u},
      {.name = "Unique",
       .since_opset = 11,
       .max_outputs = 4,
       .traits = {.elements = Elements::any, .work = WorkKind::unsupported, .attributes = "axis sorted"},
       .infer = infer_unique,
       .flops = sort_flops,
       .evaluate = evaluate_unique,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .shape_inputs = 0b1u},
  };
  return definitions;
}

}  // namespace superstep::op
