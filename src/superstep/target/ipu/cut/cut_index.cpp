// Cuts of gathering and scattering. What lies beside the indexed axes is cut freely. Indices can be shared
// out where each makes a result of its own; rows of a table can be, where a part passes over indices that
// name rows of others.
#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/op/move/index_map.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

using Places = std::vector<std::int64_t>;

// Where a part's rows begin along an axis of input 0.
bsp::Interval rows_of(const Operation& operation, const Cuts& cuts, const Part& part, int axis) {
  for (const AxisRange& range : operand_ranges(cuts, part, true, 0))
    if (range.axis == axis) return range.range;
  return {0, operation.input(0)[axis]};
}

// The integers of a tensor with every `stride`-th changed.
template <class F>
Tensor with_indices(const Tensor& indices, std::int64_t stride, F&& f) {
  Tensor result = indices.clone();
  for (std::int64_t i = 0; i < result.element_count(); i += stride)
    result.set(i, static_cast<double>(f(static_cast<std::int64_t>(result.at(i)))));
  return result;
}

// `count` rows of zeros behind axis 0.
Tensor extended(const Tensor& tensor, std::int64_t count) {
  std::vector<std::int64_t> extents = tensor.shape().extents();
  extents[0] += count;
  Tensor result(tensor.type(), Shape(extents));
  std::copy_n(tensor.bytes(), tensor.byte_count(), result.bytes());
  return result;
}

// Rows of the indexed axis (0), which a part has a range of: an index of another's row means a row of zeros
// behind the part's own.
struct RowsOfOthers {
  bsp::Interval own;
  std::int64_t all = 0;     // rows of the whole table
  std::int64_t stride = 1;  // of the index among those of its tensor

  Tensor indices(const Tensor& given) const {
    return with_indices(given, stride, [&](std::int64_t index) {
      const std::int64_t row = op::checked_index(index, all);
      return row >= own.begin && row < own.end ? row - own.begin : own.size();
    });
  }
};

bool is_summable(ElementType element) { return element != ElementType::boolean; }

// --- gathering ---------------------------------------------------------------------------------------------

// Results of rows that a part does not have are zero, and those of all parts are added.
void add_gathered_rows(Cuts& cuts, const Operation& op, std::int64_t index_stride) {
  if (!is_summable(op.inputs[0]->element)) return;
  add_summed_cut(cuts, op, op.input(0)[0], {0, -1});
  cuts.by_cost = true;
  cuts.adapt = [index_stride](const Operation& operation, const Cuts& all, const Part& part,
                              PartShape& shape) {
    const bsp::Interval own = rows_of(operation, all, part, 0);
    if (own.size() == operation.input(0)[0]) return;
    shape.place = {own.begin};
    const RowsOfOthers rows{own, operation.input(0)[0], index_stride};
    shape.evaluate = [rows, op = operation.node->op](const op::EvaluateContext& context) {
      const Tensor table = extended(context.input(0), 1), indices = rows.indices(context.input(1));
      op::get(op).evaluate({context.attributes, {&table, &indices}, context.outputs});
    };
  };
}

// Axes of the data before and behind the gathered one, and those of the indices.
Cuts gather(const Operation& op) {
  Cuts cuts;
  cuts.by_cost = true;
  const int axis = normalize_axis(op.attributes->integer("axis", 0), op.input(0).rank());
  const int indices = op.input(1).rank();
  for (int i = 0; i < indices; ++i) add_cut(cuts, op, op.input(1)[i], {-1, i}, {axis + i});
  for (int i = 0; i < op.input(0).rank(); ++i) {
    if (i == axis) continue;
    add_cut(cuts, op, op.input(0)[i], {i, -1}, {i < axis ? i : i - 1 + indices});
  }
  if (axis == 0) add_gathered_rows(cuts, op, 1);
  return cuts;
}

// Of an axis that is not the indexed one the data may have more than the indices do.
CutOperand front_of(const Operation& op, int axis, std::int64_t units) {
  if (op.input(0)[axis] == units) return {axis, 1};
  std::vector<bsp::Interval> reads;
  for (std::int64_t unit = 0; unit < units; ++unit) reads.push_back({unit, unit + 1});
  return reading(axis, std::move(reads));
}

Cuts gather_elements(const Operation& op) {
  Cuts cuts;
  cuts.by_cost = true;
  const int axis = normalize_axis(op.attributes->integer("axis", 0), op.input(0).rank());
  for (int i = 0; i < op.output().rank(); ++i) {
    const std::int64_t units = op.output()[i];
    if (units < 2) continue;
    Cut cut = empty_cut(op, units);
    if (i != axis) cut.inputs[0] = front_of(op, i, units);
    cut.inputs[1].axis = cut.outputs[0].axis = i;
    cuts.axes.push_back(std::move(cut));
  }
  return cuts;
}

// Index vectors [batch, ..., depth] into data [batch, indexed, slice].
Cuts gather_nd(const Operation& op) {
  Cuts cuts;
  cuts.by_cost = true;
  const auto batch = static_cast<int>(op.attributes->integer("batch_dims", 0));
  const int vectors = op.input(1).rank() - 1;
  const auto depth = static_cast<int>(op.input(1)[vectors]);
  for (int i = 0; i < vectors; ++i) add_cut(cuts, op, op.input(1)[i], {i < batch ? i : -1, i}, {i});
  for (int i = batch + depth; i < op.input(0).rank(); ++i)
    add_cut(cuts, op, op.input(0)[i], {i, -1}, {vectors + i - batch - depth});
  if (batch == 0 && depth > 0) add_gathered_rows(cuts, op, depth);
  return cuts;
}

// Leading axes, and the columns that are picked.
Cuts extractor(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const int rank = op.input(0).rank();
  for (int axis = 0; axis + 1 < rank; ++axis) add_cut(cuts, op, op.input(0)[axis], {axis}, {axis});
  if (op.input(1).rank() == 1) add_cut(cuts, op, op.input(1)[0], {-1, 0}, {op.output().rank() - 1});
  return cuts;
}

Cuts one_hot(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const int axis = normalize_axis(op.attributes->integer("axis", -1), op.output().rank());
  for (int i = 0; i < op.input(0).rank(); ++i) add_cut(cuts, op, op.input(0)[i], {i}, {i < axis ? i : i + 1});
  return cuts;
}

// --- scattering --------------------------------------------------------------------------------------------

Tensor without_last_row(const Tensor& tensor, const Shape& shape) {
  Tensor result(tensor.type(), shape);
  std::copy_n(tensor.bytes(), result.byte_count(), result.bytes());
  return result;
}

// A part has a range of rows of axis 0 (`stride` says which indices name them), or adds a share of the
// updates into zeros; the first share takes the data.
Adapt scattered_at(std::int64_t stride, bool rows_are_indexed) {
  return [=](const Operation& operation, const Cuts& cuts, const Part& part, PartShape& shape) {
    const bsp::Interval own = rows_of(operation, cuts, part, 0);
    const bool some = rows_are_indexed && own.size() < operation.input(0)[0];
    if (!some && shape.inputs[0]) return;
    shape.place = {some ? own.begin : -1};
    const RowsOfOthers rows{own, operation.input(0)[0], stride};
    shape.evaluate = [=, op = operation.node->op](const op::EvaluateContext& context) {
      Tensor& y = context.output(0);
      const Tensor data = context.has(0) ? context.input(0) : Tensor(y.type(), y.shape());
      const op::Definition& definition = op::get(op);
      if (!some)
        return definition.evaluate({context.attributes, {&data, context.inputs[1], context.inputs[2]}, {&y}});
      const Tensor table = extended(data, 1), indices = rows.indices(context.input(1));
      Tensor result(y.type(), table.shape());
      definition.evaluate({context.attributes, {&table, &indices, context.inputs[2]}, {&result}});
      y = without_last_row(result, y.shape());
    };
  };
}

// Shares of updates can be added apart.
void add_shared_updates(Cuts& cuts, const Operation& op, std::int64_t units, int axis) {
  if (op.attributes->text("reduction", "none") != "add" || !is_summable(op.inputs[0]->element)) return;
  if (Cut* cut = add_summed_cut(cuts, op, units, {-1, axis, axis})) cut->once = {0};
}

Cuts scatter_elements(const Operation& op) {
  Cuts cuts;
  cuts.by_cost = true;
  const int axis = normalize_axis(op.attributes->integer("axis", 0), op.input(0).rank());
  for (int i = 0; i < op.input(0).rank(); ++i)
    if (i != axis && op.input(1)[i] == op.input(0)[i]) add_cut(cuts, op, op.input(0)[i], {i, i, i}, {i});
  // Another's rows are told apart along axis 0 alone.
  if (axis == 0) add_cut(cuts, op, op.input(0)[0], {0, -1, -1}, {0});
  add_shared_updates(cuts, op, op.input(1)[axis], axis);
  cuts.adapt = scattered_at(1, axis == 0);
  return cuts;
}

// Index vectors [..., depth] name slices of the data; updates [..., slice].
Cuts scatter_nd(const Operation& op) {
  Cuts cuts;
  cuts.by_cost = true;
  const int vectors = op.input(1).rank() - 1;
  const auto depth = static_cast<int>(op.input(1)[vectors]);
  for (int i = depth; i < op.input(0).rank(); ++i)
    add_cut(cuts, op, op.input(0)[i], {i, -1, vectors + i - depth}, {i});
  if (depth > 0) add_cut(cuts, op, op.input(0)[0], {0, -1, -1}, {0});
  for (int i = 0; i < vectors; ++i) add_shared_updates(cuts, op, op.input(1)[i], i);
  cuts.adapt = scattered_at(std::max(depth, 1), depth > 0);
  return cuts;
}

// A cache [B, ..., sequence, ...] with updates at positions of each sample.
Cuts tensor_scatter(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const int axis = normalize_axis(op.attributes->integer("axis", -2), op.input(0).rank());
  for (int i = 0; i < op.input(0).rank(); ++i)
    if (i != axis) add_cut(cuts, op, op.input(0)[i], {i, i, i == 0 ? 0 : -1}, {i});
  return cuts;
}

// --- rows of packs -----------------------------------------------------------------------------------------

// Every pack by itself, and every column of its rows: what all three have in common. Indices follow axis i of
// the packs, rows do, and the last axis is that of the columns.
Cuts packs_and_columns(const Operation& op) {
  Cuts cuts;
  cuts.by_cost = true;
  const int entries = op.input(1).rank() - 1;
  std::vector<std::int64_t> columns(op.inputs.size(), -1);
  columns[0] = entries + 1;
  for (int i = 0; i < entries; ++i)
    add_cut(cuts, op, op.input(1)[i], std::vector<std::int64_t>(op.inputs.size(), i), {i});
  add_cut(cuts, op, op.input(0)[entries + 1], columns, {entries + 1});
  return cuts;
}

Cuts gather_rows(const Operation& op) {
  Cuts cuts = packs_and_columns(op);
  const int entries = op.input(1).rank() - 1;
  add_cut(cuts, op, op.input(1)[entries], {-1, entries}, {entries});
  return cuts;
}

// Shares of the entries are added apart.
Cuts segment_sum(const Operation& op) {
  Cuts cuts = packs_and_columns(op);
  const int entries = op.input(1).rank() - 1;
  add_summed_cut(cuts, op, op.input(1)[entries], {entries, entries});
  return cuts;
}

Cuts sparse_product(const Operation& op) {
  Cuts cuts = packs_and_columns(op);
  const int entries = op.input(1).rank() - 1;
  add_summed_cut(cuts, op, op.input(1)[entries], {-1, entries, entries, entries});
  return cuts;
}

// --- losses ------------------------------------------------------------------------------------------------

// Scores [N, C, ...] and labels [N, ...]. A mean can be taken of parts' means where every label counts the
// same.
Cuts loss(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const std::string reduction = op.attributes->text("reduction", "mean");
  if (reduction == "mean" && (op.has(2) || op.attributes->has("ignore_index"))) return cuts;
  if (reduction == "mean") cuts.combine = Combine::mean;
  for (int axis = 0; axis < op.input(0).rank(); ++axis) {
    if (axis == 1) continue;
    const int label = axis == 0 ? 0 : axis - 1;
    if (reduction == "none")
      add_cut(cuts, op, op.input(0)[axis], {axis, label}, {label, axis});
    else
      add_summed_cut(cuts, op, op.input(0)[axis], {axis, label}, {-1, axis});
  }
  return cuts;
}

}  // namespace

std::span<const CutRule> index_cut_rules() {
  static const CutRule rules[] = {{gather, {"Gather"}, gather_cycles},
                                  {gather_elements, {"GatherElements"}, gather_elements_cycles},
                                  {gather_nd, {"GatherND"}, gather_nd_cycles},
                                  {extractor, {"ArrayFeatureExtractor"}},
                                  {one_hot, {"OneHot"}},
                                  {scatter_elements, {"ScatterElements"}, scatter_elements_cycles},
                                  {scatter_nd, {"ScatterND"}, scatter_nd_cycles},
                                  {tensor_scatter, {"TensorScatter"}},
                                  {gather_rows, {"superstep.GatherRows"}, gather_cycles},
                                  {segment_sum, {"superstep.SegmentSum"}, segment_sum_cycles},
                                  {sparse_product, {"superstep.SparseProduct"}, sparse_product_cycles},
                                  {loss, {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}}};
  return rules;
}

}  // namespace superstep::target::ipu
