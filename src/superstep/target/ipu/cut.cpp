#include "superstep/target/ipu/cut.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace superstep::target::ipu {
namespace {

Cut empty_cut(const Operation& op, std::int64_t units) {
  return {units, std::vector<CutOperand>(op.inputs.size()), std::vector<CutOperand>(op.outputs.size()), {}};
}

// Sets an operand's axis when there is such an operand and its extent is units x chunk; one of extent 1 that
// broadcasts stays whole. False when the extents do not fit: then there is no such cut.
bool follow(const std::vector<const graph::ValueType*>& types, std::vector<CutOperand>& operands,
            std::size_t i, std::int64_t axis, std::int64_t units, std::int64_t chunk = 1) {
  if (i >= types.size() || !types[i]) return true;
  const Shape& shape = types[i]->shape;
  if (axis < 0 || axis >= shape.rank()) return true;
  const std::int64_t extent = shape[static_cast<int>(axis)];
  if (extent == 1 && units * chunk > 1) return true;
  if (extent != units * chunk) return false;
  operands[i] = {static_cast<int>(axis), chunk};
  return true;
}

// Appends a cut in which input i follows axis inputs[i] and output i axis outputs[i] (-1: whole).
void add_cut(Cuts& cuts, const Operation& op, std::int64_t units, std::vector<std::int64_t> inputs,
             std::vector<std::int64_t> outputs) {
  if (units <= 1) return;
  Cut cut = empty_cut(op, units);
  bool fits = true;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    fits = fits && follow(op.inputs, cut.inputs, i, inputs[i], units);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    fits = fits && follow(op.outputs, cut.outputs, i, outputs[i], units);
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    fits = fits && (!op.outputs[i] || cut.outputs[i].axis >= 0);  // every part makes results of its own
  if (fits) cuts.axes.push_back(std::move(cut));
}

// --- rules
// --------------------------------------------------------------------------------------------------

// Element by element, operands broadcast to the result.
Cuts pointwise(const Operation& op) {
  Cuts cuts;
  const Shape& out = op.output();
  const std::int64_t count = out.element_count();
  bool flat = true;
  for (const auto* list : {&op.inputs, &op.outputs})
    for (const graph::ValueType* type : *list)
      flat = flat && (!type || type->shape == out || type->shape.element_count() == 1);
  if (flat) {
    cuts.flat = true;
    Cut cut = empty_cut(op, count);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] && op.input(i) == out && count > 1) cut.inputs[i].axis = 0;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) cut.outputs[i].axis = 0;
    if (count > 1) cuts.axes.push_back(std::move(cut));
    return cuts;
  }
  for (int axis = 0; axis < out.rank(); ++axis) {
    std::vector<std::int64_t> inputs;
    for (const graph::ValueType* type : op.inputs)
      inputs.push_back(type ? axis - (out.rank() - type->shape.rank()) : -1);
    add_cut(cuts, op, out[axis], inputs, std::vector<std::int64_t>(op.outputs.size(), axis));
  }
  return cuts;
}

Cuts matmul(const Operation& op) {
  Cuts cuts;
  const int a = op.input(0).rank(), b = op.input(1).rank(), out = op.output().rank();
  if (a < 2 || b < 2) return cuts;
  for (int axis = 0; axis < out - 2; ++axis)
    add_cut(cuts, op, op.output()[axis], {axis - (out - a), axis - (out - b)}, {axis});
  add_cut(cuts, op, op.output()[out - 2], {a - 2, -1}, {out - 2});
  add_cut(cuts, op, op.output()[out - 1], {-1, b - 1}, {out - 1});
  return cuts;
}

Cuts gemm(const Operation& op) {
  Cuts cuts;
  const bool ta = op.node->attributes.integer("transA", 0) != 0,
             tb = op.node->attributes.integer("transB", 0) != 0;
  const int c = op.has(2) ? op.input(2).rank() : 0;
  add_cut(cuts, op, op.output()[0], {ta ? 1 : 0, -1, c - 2}, {0});
  add_cut(cuts, op, op.output()[1], {-1, tb ? 0 : 1, c - 1}, {1});
  return cuts;
}

// Groups of a grouped convolution: whole groups go to a part.
void add_groups(Cuts& cuts, const Operation& op, std::int64_t group, std::vector<int> inputs, int output) {
  Cut cut = empty_cut(op, group);
  cut.attribute = "group";
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.has(i)) cut.inputs[i] = {inputs[i], op.input(i)[inputs[i]] / group};
  cut.outputs[0] = {output, op.output()[output] / group};
  cuts.axes.push_back(std::move(cut));
}

Cuts conv(const Operation& op) {
  Cuts cuts;
  const std::int64_t group = op.node->attributes.integer("group", 1);
  add_cut(cuts, op, op.output()[0], {0, -1, -1}, {0});
  if (group == 1)
    add_cut(cuts, op, op.output()[1], {-1, 0, 0}, {1});
  else
    add_groups(cuts, op, group, {1, 0, 0}, 1);
  return cuts;
}

Cuts conv_transpose(const Operation& op) {
  Cuts cuts;
  const std::int64_t group = op.node->attributes.integer("group", 1);
  add_cut(cuts, op, op.output()[0], {0, -1, -1}, {0});
  if (group == 1)
    add_cut(cuts, op, op.output()[1], {-1, 1, 0}, {1});
  else
    add_groups(cuts, op, group, {1, 0, 0}, 1);
  return cuts;
}

Cuts conv_weight_gradient(const Operation& op) {
  Cuts cuts;
  const std::int64_t group = op.node->attributes.integer("group", 1);
  if (group == 1) {
    add_cut(cuts, op, op.output()[0], {-1, 1}, {0});
    add_cut(cuts, op, op.output()[1], {1, -1}, {1});
  } else {
    add_groups(cuts, op, group, {1, 1}, 0);
  }
  return cuts;
}

// The first axes of every operand belong to samples and channels.
Cuts sample_and_channel(const Operation& op) {
  Cuts cuts;
  for (int axis = 0; axis < 2; ++axis)
    add_cut(cuts, op, op.output()[axis], std::vector<std::int64_t>(op.inputs.size(), axis),
            std::vector<std::int64_t>(op.outputs.size(), axis));
  return cuts;
}

// Channels, with one number a channel in the other operands.
Cuts channels(const Operation& op) {
  Cuts cuts;
  if (op.input(0).rank() < 2) return cuts;
  std::vector<std::int64_t> inputs, outputs;
  const auto axis_of = [](const graph::ValueType* type) { return type && type->shape.rank() > 1 ? 1 : 0; };
  for (const graph::ValueType* type : op.inputs) inputs.push_back(axis_of(type));
  for (const graph::ValueType* type : op.outputs) outputs.push_back(axis_of(type));
  add_cut(cuts, op, op.input(0)[1], inputs, outputs);
  return cuts;
}

std::set<int> reduced_axes(const Operation& op) {
  const int rank = op.input(0).rank();
  std::vector<std::int64_t> axes = op.node->attributes.integers("axes", {});
  if (op.has(1)) {
    if (!op.constants[1]) axes.clear();
    for (std::int64_t i = 0; op.constants[1] && i < op.constants[1]->element_count(); ++i)
      axes.push_back(static_cast<std::int64_t>(op.constants[1]->at(i)));
  }
  std::set<int> result;
  for (const std::int64_t axis : axes) result.insert(normalize_axis(axis, rank));
  if (axes.empty() && op.node->attributes.integer("noop_with_empty_axes", 0) == 0)
    for (int axis = 0; axis < rank; ++axis) result.insert(axis);
  return result;
}

Cuts reduction(const Operation& op) {
  Cuts cuts;
  const std::set<int> reduced = reduced_axes(op);
  const bool keep = op.node->attributes.integer("keepdims", 1) != 0;
  int out = 0;
  for (int axis = 0; axis < op.input(0).rank(); ++axis) {
    if (reduced.contains(axis)) {
      out += keep;
      continue;
    }
    add_cut(cuts, op, op.input(0)[axis], {axis, -1}, {out++});
  }
  return cuts;
}

// Every axis but one: softmax and its kin.
Cuts along_one_axis(const Operation& op, std::int64_t otherwise) {
  Cuts cuts;
  const int rank = op.input(0).rank(),
            axis = normalize_axis(op.node->attributes.integer("axis", otherwise), rank);
  for (int i = 0; i < rank; ++i)
    if (i != axis) add_cut(cuts, op, op.input(0)[i], {i}, std::vector<std::int64_t>(op.outputs.size(), i));
  return cuts;
}
Cuts softmax(const Operation& op) { return along_one_axis(op, -1); }

// The axes in front of the normalised ones.
Cuts layer_norm(const Operation& op) {
  Cuts cuts;
  const int axis = normalize_axis(op.node->attributes.integer("axis", -1), op.input(0).rank());
  for (int i = 0; i < axis; ++i)
    add_cut(cuts, op, op.input(0)[i], {i}, std::vector<std::int64_t>(op.outputs.size(), i));
  return cuts;
}

// Axes of the data before and behind the gathered one, and those of the indices.
Cuts gather(const Operation& op) {
  Cuts cuts;
  const int axis = normalize_axis(op.node->attributes.integer("axis", 0), op.input(0).rank());
  const int indices = op.input(1).rank();
  for (int i = 0; i < indices; ++i) add_cut(cuts, op, op.input(1)[i], {-1, i}, {axis + i});
  for (int i = 0; i < op.input(0).rank(); ++i) {
    if (i == axis) continue;
    add_cut(cuts, op, op.input(0)[i], {i, -1}, {i < axis ? i : i - 1 + indices});
  }
  return cuts;
}

// Samples of a recurrent layer: x [T, N, I], initial states [D, N, H], results [T, D, N, H] and [D, N, H].
Cuts recurrent(const Operation& op) {
  Cuts cuts;
  if (op.node->attributes.integer("layout", 0) != 0 || op.has(4)) return cuts;
  std::vector<std::int64_t> inputs{1, -1, -1, -1, -1, 1, 1};
  inputs.resize(op.inputs.size());
  if (op.inputs.size() > 7) inputs[7] = -1;
  add_cut(cuts, op, op.input(0)[1], inputs, {2, 1, 1});
  return cuts;
}

Cuts optimizer(const Operation& op) {
  for (const graph::ValueType* type : op.outputs)
    if (type && type->shape != op.output()) return {};
  return pointwise(op);
}

struct Rule {
  Cuts (*cuts)(const Operation&);
  std::vector<std::string_view> operators;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table{
      {pointwise, {"Neg",        "Abs",         "Sign",     "Exp",        "Log",
                   "Sqrt",       "Reciprocal",  "Erf",      "Floor",      "Ceil",
                   "Round",      "Add",         "Sub",      "Mul",        "Div",
                   "Pow",        "Min",         "Max",      "Sum",        "Mean",
                   "Sin",        "Cos",         "Tan",      "Asin",       "Acos",
                   "Atan",       "Sinh",        "Cosh",     "Asinh",      "Acosh",
                   "Atanh",      "Mod",         "BitShift", "BitwiseAnd", "BitwiseOr",
                   "BitwiseXor", "BitwiseNot",  "Equal",    "Greater",    "GreaterOrEqual",
                   "Less",       "LessOrEqual", "And",      "Or",         "Xor",
                   "Not",        "IsNaN",       "IsInf",    "Where",      "Cast",
                   "Relu",       "LeakyRelu",   "Sigmoid",  "Tanh",       "Softplus",
                   "Softsign",   "Elu",         "Selu",     "Celu",       "HardSigmoid",
                   "HardSwish",  "Gelu",        "Mish",     "Swish",      "ThresholdedRelu",
                   "Shrink",     "Clip",        "PRelu"}},
      {matmul, {"MatMul"}},
      {gemm, {"Gemm"}},
      {conv, {"Conv"}},
      {conv_transpose, {"ConvTranspose"}},
      {conv_weight_gradient, {"superstep.ConvWeightGradient"}},
      {sample_and_channel,
       {"MaxPool", "superstep.MaxPoolGradient", "AveragePool", "superstep.AveragePoolGradient", "LpPool",
        "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}},
      {channels, {"BatchNormalization", "superstep.ChannelMoments", "superstep.ChannelSums"}},
      {reduction,
       {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}},
      {softmax, {"Softmax", "LogSoftmax", "Hardmax"}},
      {layer_norm, {"LayerNormalization", "RMSNormalization"}},
      {gather, {"Gather"}},
      {recurrent, {"LSTM", "GRU", "RNN"}},
      {optimizer, {"superstep.Sgd", "superstep.Adam"}},
  };
  return table;
}

}  // namespace

Operation operation_of(const graph::Graph& graph, const graph::Node& node) {
  Operation operation;
  operation.node = &node;
  for (const graph::ValueId id : node.inputs) {
    operation.inputs.push_back(id.valid() ? &graph.type(id) : nullptr);
    const bool known = id.valid() && graph.value(id).kind == graph::ValueKind::constant;
    operation.constants.push_back(known ? &graph.value(id).data : nullptr);
  }
  for (const graph::ValueId id : node.outputs)
    operation.outputs.push_back(id.valid() ? &graph.type(id) : nullptr);
  return operation;
}

Cuts cuts_of(const Operation& operation) {
  for (const graph::ValueType* type : operation.outputs)
    if (!type) return {};  // rules count on every result
  for (const Rule& rule : rules())
    if (std::find(rule.operators.begin(), rule.operators.end(), operation.node->op) != rule.operators.end())
      return rule.cuts(operation);
  return {};
}

}  // namespace superstep::target::ipu
