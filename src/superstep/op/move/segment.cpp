#include "superstep/op/move/segment.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// data [packs..., rows, width] with indices [packs..., entries].
struct PackedRows {
  std::int64_t packs = 1, rows = 1, width = 1, entries = 1;
};

PackedRows packed_rows(const Shape& data, const Shape& index) {
  const int last = index.rank() - 1;
  PackedRows result{.rows = data[last], .width = data[last + 1], .entries = index[last]};
  for (int axis = 0; axis < last; ++axis) result.packs *= index[axis];
  return result;
}

Shape with_rows(const Shape& data, std::int64_t rows) {
  Extents extents = data.extents();
  extents[extents.size() - 2] = rows;
  return Shape(extents);
}

void require_packs(const InferContext& context, std::size_t index, std::string_view name) {
  require_integer(context, index, name);
  require_min_rank(context, index, name, 1);
  const Shape &data = context.input(0).shape, &own = context.input(index).shape;
  require(data.rank() == own.rank() + 1,
          fmt::format("input data has {} axes, expected {}: those of input {}, and the width of a row",
                      data.rank(), own.rank() + 1, name));
  for (int axis = 0; axis + 1 < own.rank(); ++axis)
    require(data[axis] == own[axis],
            fmt::format("input {} has extent {} in axis {}, data {}", name, own[axis], axis, data[axis]));
}

std::int64_t count_of(const Attributes& attributes) {
  const std::int64_t count = attributes.integer("count");
  require(count >= 0, fmt::format("attribute 'count' is {}, expected 0 or more", count));
  return count;
}

std::vector<ValueType> infer_gather_rows(const InferContext& context) {
  require_floating(context, 0, "data");
  require_packs(context, 1, "index");
  const Shape &data = context.input(0).shape, &index = context.input(1).shape;
  return {{context.input(0).element, with_rows(data, index[index.rank() - 1])}};
}

std::vector<ValueType> infer_segment_sum(const InferContext& context) {
  require_floating(context, 0, "data");
  require_packs(context, 1, "index");
  const Shape &data = context.input(0).shape, &index = context.input(1).shape;
  require(data[data.rank() - 2] == index[index.rank() - 1],
          fmt::format("input data has {} rows, index {} entries", data[data.rank() - 2],
                      index[index.rank() - 1]));
  return {{context.input(0).element, with_rows(data, count_of(context.attributes))}};
}

std::vector<ValueType> infer_sparse_product(const InferContext& context) {
  require_floating(context, 0, "data");
  require_packs(context, 1, "source");
  require_integer(context, 2, "target");
  require_shape(context, 2, "target", context.input(1).shape);
  require_same_element(context, 3, "weight", 0, "data");
  require_shape(context, 3, "weight", context.input(1).shape);
  return {{context.input(0).element, with_rows(context.input(0).shape, count_of(context.attributes))}};
}

// --- definitions -------------------------------------------------------------------------------------------

// The index of a row, or -1 for none.
std::int64_t row_or_none(std::int64_t index, std::int64_t rows) {
  if (index < -1 || index >= rows)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("index {} is neither a row in [0, {}) nor -1, none", index, rows));
  return index;
}

void evaluate_gather_rows(const EvaluateContext& context) {
  const Tensor &data = context.input(0), &index = context.input(1);
  const PackedRows p = packed_rows(data.shape(), index.shape());
  const Extents indices = integers_of(index);
  for (std::int64_t e = 0; e < p.packs * p.entries; ++e) {
    const std::int64_t row = row_or_none(indices[static_cast<std::size_t>(e)], p.rows);
    if (row < 0) continue;
    const std::int64_t from = (e / p.entries * p.rows + row) * p.width;
    for (std::int64_t i = 0; i < p.width; ++i) context.output(0).set(e * p.width + i, data.at(from + i));
  }
}

// Adds weight(e) data[row_of(e)] to the row target[e] of each pack: all entries in their order, in double.
template <class RowOf, class Weight>
void add_to_targets(const EvaluateContext& context, const PackedRows& p, const Extents& target,
                    const RowOf& row_of, const Weight& weight) {
  const Tensor& data = context.input(0);
  Tensor& y = context.output(0);
  const std::int64_t count = y.shape()[y.shape().rank() - 2];
  std::vector<double> sums(static_cast<std::size_t>(y.element_count()));
  for (std::int64_t e = 0; e < p.packs * p.entries; ++e) {
    const std::int64_t to = row_or_none(target[static_cast<std::size_t>(e)], count), from = row_of(e);
    if (to < 0 || from < 0) continue;
    const std::int64_t at = (e / p.entries * count + to) * p.width;
    for (std::int64_t i = 0; i < p.width; ++i)
      sums[static_cast<std::size_t>(at + i)] += weight(e) * data.at(from * p.width + i);
  }
  for (std::int64_t i = 0; i < y.element_count(); ++i) y.set(i, sums[static_cast<std::size_t>(i)]);
}

void evaluate_segment_sum(const EvaluateContext& context) {
  const PackedRows p = packed_rows(context.input(0).shape(), context.input(1).shape());
  add_to_targets(context, p, integers_of(context.input(1)), std::identity(),
                 [](std::int64_t) { return 1.0; });
}

void evaluate_sparse_product(const EvaluateContext& context) {
  const PackedRows p = packed_rows(context.input(0).shape(), context.input(1).shape());
  const Extents source = integers_of(context.input(1));
  const auto row_of = [&](std::int64_t e) {
    const std::int64_t row = row_or_none(source[static_cast<std::size_t>(e)], p.rows);
    return row < 0 ? row : e / p.entries * p.rows + row;
  };
  add_to_targets(context, p, integers_of(context.input(2)), row_of,
                 [&](std::int64_t e) { return context.input(3).at(e); });
}

// --- derivatives -------------------------------------------------------------------------------------------

std::int64_t rows_of(Var data) { return data.shape()[data.shape().rank() - 2]; }

std::vector<Var> vjp_gather_rows(const DerivativeContext& context, std::span<const Var> cotangents,
                                 const std::vector<bool>&) {
  return {segment_sum(cotangents[0], context.inputs[1], rows_of(context.inputs[0])), Var()};
}

std::vector<Var> jvp_gather_rows(const DerivativeContext& context, std::span<const Var> tangents) {
  if (!tangents[0].valid()) return {Var()};
  return {gather_rows(tangents[0], context.inputs[1])};
}

std::vector<Var> vjp_segment_sum(const DerivativeContext& context, std::span<const Var> cotangents,
                                 const std::vector<bool>&) {
  return {gather_rows(cotangents[0], context.inputs[1]), Var()};
}

std::vector<Var> jvp_segment_sum(const DerivativeContext& context, std::span<const Var> tangents) {
  if (!tangents[0].valid()) return {Var()};
  return {segment_sum(tangents[0], context.inputs[1], count_of(context.attributes))};
}

// The weight of an entry meets the products of the two rows that it joins.
std::vector<Var> vjp_sparse_product(const DerivativeContext& context, std::span<const Var> cotangents,
                                    const std::vector<bool>& wanted) {
  const Var data = context.inputs[0], source = context.inputs[1], target = context.inputs[2];
  std::vector<Var> result = no_cotangents(context);
  if (wanted[0]) result[0] = sparse_product(cotangents[0], target, source, context.inputs[3], rows_of(data));
  if (wanted[3]) result[3] = reduce_sum(gather_rows(cotangents[0], target) * gather_rows(data, source), {-1});
  return result;
}

std::vector<Var> jvp_sparse_product(const DerivativeContext& context, std::span<const Var> tangents) {
  const auto product = [&](Var data, Var weight) {
    return sparse_product(data, context.inputs[1], context.inputs[2], weight, count_of(context.attributes));
  };
  Var by_data, by_weight;
  if (tangents[0].valid()) by_data = product(tangents[0], context.inputs[3]);
  if (tangents[3].valid()) by_weight = product(context.inputs[0], tangents[3]);
  return {sum_valid(by_data, by_weight)};
}

// --- in plain ONNX, for any number of packs ----------------------------------------------------------------

// A row of zeros behind the others is what -1, counted from the end, then names.
std::vector<Var> decompose_gather_rows(const DerivativeContext& context) {
  const Var data = context.inputs[0], index = context.inputs[1];
  const int rank = data.shape().rank();
  Extents pads(static_cast<std::size_t>(2 * rank), 0);
  pads[static_cast<std::size_t>(2 * rank - 2)] = 1;
  return {gather_nd(pad(data, pads), unsqueeze(index, {rank - 1}), rank - 2)};
}

// A product with the matrix that is 1 where an entry's index is a row's number.
std::vector<Var> decompose_segment_sum(const DerivativeContext& context) {
  const Var data = context.inputs[0], index = cast(context.inputs[1], ElementType::i64);
  const std::int64_t count = count_of(context.attributes);
  Extents numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  const Var rows = context.builder.constant(Tensor::from(Shape{count, 1}, numbers));
  const Var chosen = equal(unsqueeze(index, {index.shape().rank() - 1}), rows);
  return {matmul(cast(chosen, data.element()), data)};
}

std::vector<Var> decompose_sparse_product(const DerivativeContext& context) {
  const Var weight = unsqueeze(context.inputs[3], {context.inputs[3].shape().rank()});
  return {segment_sum(gather_rows(context.inputs[0], context.inputs[1]) * weight, context.inputs[2],
                      count_of(context.attributes))};
}

// --- cost --------------------------------------------------------------------------------------------------

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

double segment_sum_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return static_cast<double>(inputs[0].shape.element_count());
}

double sparse_product_flops(const Attributes&, std::span<const ValueType> inputs,
                            std::span<const ValueType>) {
  const PackedRows p = packed_rows(inputs[0].shape, inputs[1].shape);
  return 2.0 * static_cast<double>(p.packs * p.entries * p.width);
}

// Copies, and sums that are rounded once.
constexpr Traits packed_traits(WorkKind work) {
  return {.elements = Elements::floating,
          .work = work,
          .batch = batch::rows_of_packs,
          .precision = Precision::follows};
}

}  // namespace

Var gather_rows(Var data, Var index) { return data.builder().node1("superstep.GatherRows", {data, index}); }
Var segment_sum(Var data, Var index, std::int64_t count) {
  return data.builder().node1("superstep.SegmentSum", {data, index}, {{"count", count}});
}
Var sparse_product(Var data, Var source, Var target, Var weight, std::int64_t count) {
  return data.builder().node1("superstep.SparseProduct", {data, source, target, weight}, {{"count", count}});
}

std::span<const Definition> segment_operators() {
  static const Definition definitions[] = {
      {.name = "superstep.GatherRows",
       .since_opset = 0,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = packed_traits(WorkKind::gather),
       .infer = infer_gather_rows,
       .flops = no_flops,
       .evaluate = evaluate_gather_rows,
       .vjp = vjp_gather_rows,
       .jvp = jvp_gather_rows,
       .decompose = decompose_gather_rows},
      {.name = "superstep.SegmentSum",
       .since_opset = 0,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = packed_traits(WorkKind::scatter),
       .infer = infer_segment_sum,
       .flops = segment_sum_flops,
       .evaluate = evaluate_segment_sum,
       .vjp = vjp_segment_sum,
       .jvp = jvp_segment_sum,
       .decompose = decompose_segment_sum},
      {.name = "superstep.SparseProduct",
       .since_opset = 0,
       .min_inputs = 4,
       .max_inputs = 4,
       .traits = packed_traits(WorkKind::scatter),
       .infer = infer_sparse_product,
       .flops = sparse_product_flops,
       .evaluate = evaluate_sparse_product,
       .vjp = vjp_sparse_product,
       .jvp = jvp_sparse_product,
       .decompose = decompose_sparse_product},
  };
  return definitions;
}

}  // namespace superstep::op
