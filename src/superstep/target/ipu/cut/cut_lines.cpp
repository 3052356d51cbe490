// Cuts of operators that work on lines or matrices of their operands: softmax and normalisations, sums along
// an axis, transforms. Everything in front of a line, beside it and behind it is cut.
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

using Axes = std::set<int>;
using Places = std::vector<std::int64_t>;

Axes last(int rank, int count) {
  Axes axes;
  for (int axis = std::max(0, rank - count); axis < rank; ++axis) axes.insert(axis);
  return axes;
}

// Along every axis of input 0 but the `kept` ones: outputs have it at the same place, other inputs are whole.
Cuts beside(const Operation& op, const Axes& kept) {
  Cuts cuts;
  cuts.even = true;
  const int rank = op.input(0).rank();
  for (int axis = 0; axis < rank; ++axis)
    if (!kept.contains(axis)) add_cut(cuts, op, op.input(0)[axis], {axis}, Places(op.outputs.size(), axis));
  return cuts;
}

int axis_attribute(const Operation& op, std::int64_t otherwise) {
  return normalize_axis(op.attributes->integer("axis", otherwise), op.input(0).rank());
}

Cuts softmax(const Operation& op) {
  Cuts cuts = beside(op, {axis_attribute(op, -1)});
  cuts.even = false;
  return cuts;
}

Cuts line_of_last_axis(const Operation& op) { return beside(op, {axis_attribute(op, -1)}); }
Cuts last_axis(const Operation& op) { return beside(op, last(op.input(0).rank(), 1)); }
Cuts matrices(const Operation& op) { return beside(op, last(op.input(0).rank(), 2)); }

// The best of each line alone is found in parts of lines, too.
Cuts top_k(const Operation& op) {
  const int axis = axis_attribute(op, -1);
  Cuts cuts = beside(op, {axis});
  if (op.output()[axis] != 1) return cuts;
  const bool largest = op.attributes->integer("largest", 1) != 0;
  const bool places = op.outputs.size() > 1 && op.outputs[1];
  if (!places && !largest && is_floating(op.inputs[0]->element))
    return cuts;  // a minimum may be NaN, which this is not
  if (places)
    cuts.combine = largest ? Combine::place_of_largest : Combine::place_of_smallest;
  else
    cuts.combine = largest ? Combine::maximum : Combine::minimum;
  add_summed_cut(cuts, op, op.input(0)[axis], {axis});
  return cuts;
}

// Every system by itself, and every column of one: its matrix then goes whole to each part.
Cuts triangular_systems(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const int rank = op.input(0).rank();
  for (int axis = 0; axis + 2 < rank; ++axis) add_cut(cuts, op, op.input(0)[axis], {axis, axis}, {axis});
  add_cut(cuts, op, op.input(1)[rank - 1], {-1, rank - 1}, {rank - 1});
  return cuts;
}

// The axis is an input that is known.
Cuts cumulative(const Operation& op) {
  if (!op.has(1) || !op.constants[1]) return {};
  return beside(op, {normalize_axis(static_cast<std::int64_t>(op.constants[1]->at(0)), op.input(0).rank())});
}

Cuts compress(const Operation& op) {
  if (!op.attributes->has("axis")) return {};
  return beside(op, {axis_attribute(op, 0)});
}

Cuts local_response(const Operation& op) { return beside(op, {1}); }

Cuts mean_variance(const Operation& op) {
  Axes kept;
  for (const std::int64_t axis : op.attributes->integers("axes", {0, 2, 3}))
    kept.insert(normalize_axis(axis, op.input(0).rank()));
  return beside(op, kept);
}

// Results have the axis with one element, or do not have it.
Cuts arg(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const int kept = axis_attribute(op, 0);
  const bool keep = op.attributes->integer("keepdims", 1) != 0;
  for (int axis = 0; axis < op.input(0).rank(); ++axis)
    if (axis != kept) add_cut(cuts, op, op.input(0)[axis], {axis}, {axis - (!keep && axis > kept)});
  return cuts;
}

// Rows of features; results may have none of their extent but that of the rows.
Cuts rows(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  if (op.input(0).rank() == 2) add_cut(cuts, op, op.input(0)[0], {0}, {0});
  return cuts;
}

// Scale and bias have the normalised axes, or all that broadcast.
Cuts layer_norm(const Operation& op) {
  Cuts cuts;
  const int rank = op.input(0).rank(), axis = axis_attribute(op, -1);
  for (int i = 0; i < axis; ++i) {
    Places inputs{i};
    for (std::size_t k = 1; k < op.inputs.size(); ++k)
      inputs.push_back(op.has(k) ? i - (rank - op.input(k).rank()) : -1);
    add_cut(cuts, op, op.input(0)[i], inputs, Places(op.outputs.size(), i));
  }
  return cuts;
}

// dY, X and scale: lines have a dX of their own, and make partial sums of the parameters' gradients.
Cuts layer_norm_gradient(const Operation& op) {
  Cuts cuts;
  const int axis = axis_attribute(op, -1);
  for (int i = 0; i < axis; ++i) add_summed_cut(cuts, op, op.input(0)[i], {i, i}, {i});
  return cuts;
}

Cuts instance_norm(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  add_cut(cuts, op, op.input(0)[0], {0}, {0});
  add_cut(cuts, op, op.input(0)[1], {1, 0, 0}, {1});
  return cuts;
}

// Whole groups of channels; scale and bias are a channel's or a group's.
Cuts group_norm(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  add_cut(cuts, op, op.input(0)[0], {0}, {0});
  const std::int64_t groups = op.attributes->integer("num_groups");
  if (groups < 2) return cuts;
  Cut cut = empty_cut(op, groups);
  cut.attribute = "num_groups";
  cut.inputs[0] = cut.outputs[0] = {1, op.input(0)[1] / groups};
  for (std::size_t i = 1; i < 3; ++i)
    if (op.has(i)) cut.inputs[i] = {0, op.input(i)[0] / groups};
  cuts.axes.push_back(std::move(cut));
  return cuts;
}

// The diagonal that a part sees is further along by as much as it begins further down or to the right.
std::int64_t diagonal_shift(const Cuts& cuts, const Part& part, int rank) {
  std::int64_t shift = 0;
  for (const AxisRange& range : operand_ranges(cuts, part, true, 0))
    shift += range.axis == rank - 2 ? range.range.begin : range.axis == rank - 1 ? -range.range.begin : 0;
  return shift;
}

Cuts eye(const Operation& op) {
  Cuts cuts = beside(op, {});
  cuts.adapt = [](const Operation& operation, const Cuts& all, const Part& part, PartShape& shape) {
    shape.attributes.set("k", operation.attributes->integer("k", 0) + diagonal_shift(all, part, 2));
    shape.place = {shape.attributes.integer("k")};
  };
  return cuts;
}

// k is an input: the part has one of its own where it is known.
Cuts triangle(const Operation& op) {
  const int rank = op.input(0).rank();
  if (op.has(1) && !op.constants[1]) return matrices(op);
  Cuts cuts = beside(op, {});
  cuts.adapt = [rank](const Operation& operation, const Cuts& all, const Part& part, PartShape& shape) {
    const std::int64_t k = operation.has(1) ? static_cast<std::int64_t>(operation.constants[1]->at(0)) : 0;
    const Tensor diagonal = Tensor::scalar(k + diagonal_shift(all, part, rank));
    shape.place = {k + diagonal_shift(all, part, rank)};
    shape.evaluate = [diagonal](const op::EvaluateContext& context) {
      op::get("Trilu").evaluate({context.attributes, {context.inputs[0], &diagonal}, context.outputs});
    };
  };
  return cuts;
}

Cuts reverse_sequence(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const auto batch = static_cast<int>(op.attributes->integer("batch_axis", 1));
  for (int axis = 0; axis < op.input(0).rank(); ++axis)
    if (axis == batch || axis > 1)
      add_cut(cuts, op, op.input(0)[axis], {axis, axis == batch ? 0 : -1}, {axis});
  return cuts;
}

// All axes but the transformed one and that of real and imaginary parts.
Cuts fourier(const Operation& op) {
  if (op.has(2) && !op.constants[2]) return {};
  const int rank = op.input(0).rank();
  const std::int64_t axis =
      op.has(2) ? static_cast<std::int64_t>(op.constants[2]->at(0)) : op.attributes->integer("axis", -2);
  return beside(op, {normalize_axis(axis, rank), rank - 1});
}

// Real and imaginary parts together, along all axes but the transformed ones.
Cuts fourier_of_parts(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const int rank = op.input(0).rank();
  Axes kept;
  for (const std::int64_t axis : op.attributes->integers("axes")) kept.insert(normalize_axis(axis, rank));
  for (int axis = 0; axis < rank; ++axis)
    if (!kept.contains(axis))
      add_cut(cuts, op, op.input(0)[axis], Places(op.inputs.size(), axis), Places(op.outputs.size(), axis));
  return cuts;
}

// Signals, and frames: neighbours overlap.
Cuts frames(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  add_cut(cuts, op, op.input(0)[0], {0}, {0});
  const std::int64_t count = op.output()[1];
  if (!op.constants[1] || count < 2 || op.input(0).rank() != 3) return cuts;
  const auto step = static_cast<std::int64_t>(op.constants[1]->at(0));
  std::int64_t length = op.input(0)[1];
  if (op.has(2)) length = op.input(2)[0];
  if (op.has(3) && !op.constants[3]) return cuts;
  if (op.has(3)) length = static_cast<std::int64_t>(op.constants[3]->at(0));
  std::vector<bsp::Interval> reads;
  for (std::int64_t frame = 0; frame < count; ++frame) reads.push_back({frame * step, frame * step + length});
  if (reads.back().end > op.input(0)[1]) return cuts;
  Cut cut = empty_cut(op, count);
  cut.inputs[0] = reading(1, std::move(reads));
  cut.outputs[0].axis = 1;
  cuts.axes.push_back(std::move(cut));
  return cuts;
}

}  // namespace

std::span<const CutRule> line_cut_rules() {
  static const CutRule rules[] = {
      {softmax, {"Softmax", "LogSoftmax", "Hardmax"}, softmax_cycles},
      {line_of_last_axis, {"LpNormalization"}, normalization_cycles},
      {top_k, {"TopK"}, top_k_cycles},
      {last_axis, {"Normalizer", "Scaler"}},
      {matrices, {"Det"}},
      {matrices, {"superstep.Cholesky"}, cholesky_cycles},
      {triangular_systems, {"superstep.TriangularSolve"}, triangular_solve_cycles},
      {cumulative, {"CumSum", "CumProd"}},
      {compress, {"Compress"}},
      {local_response, {"LRN"}},
      {mean_variance, {"MeanVarianceNormalization"}, normalization_cycles},
      {arg, {"ArgMax", "ArgMin"}, arg_cycles},
      {rows, {"LinearRegressor", "TfIdfVectorizer"}},
      {layer_norm, {"LayerNormalization", "RMSNormalization"}, normalization_cycles},
      {layer_norm_gradient, {"superstep.LayerNormalizationGradient"}, normalization_cycles},
      {instance_norm, {"InstanceNormalization"}, normalization_cycles},
      {group_norm, {"GroupNormalization"}, normalization_cycles},
      {eye, {"EyeLike"}},
      {triangle, {"Trilu"}},
      {reverse_sequence, {"ReverseSequence"}},
      {fourier, {"DFT"}},
      {fourier_of_parts, {"superstep.Fourier"}, fourier_cycles},
      {frames, {"STFT"}},
  };
  return rules;
}

}  // namespace superstep::target::ipu
