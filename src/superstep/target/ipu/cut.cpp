#include "superstep/target/ipu/cut.h"

#include <algorithm>
#include <array>

#include "superstep/target/ipu/cut_rules.h"

namespace superstep::target::ipu {
namespace {

// Sets an operand's axis when there is such an operand and its extent is `units`; one of extent 1 that
// broadcasts stays whole. False when the extents do not fit: then there is no such cut.
bool follow(const std::vector<const graph::ValueType*>& types, std::vector<CutOperand>& operands,
            std::size_t i, std::int64_t axis, std::int64_t units) {
  if (i >= types.size() || !types[i]) return true;
  const Shape& shape = types[i]->shape;
  if (axis < 0 || axis >= shape.rank()) return true;
  const std::int64_t extent = shape[static_cast<int>(axis)];
  if (extent == 1 && units > 1) return true;
  if (extent != units) return false;
  operands[i] = {static_cast<int>(axis), 1};
  return true;
}

constexpr std::array pointwise_operators = {
    "Neg",        "Abs",         "Sign",     "Exp",        "Log",
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
    "Shrink",     "Clip",        "PRelu"};

Cuts pointwise(const Operation& op) {
  Cuts cuts;
  const Shape& out = op.output();
  for (int axis = 0; axis < out.rank(); ++axis) {
    std::vector<std::int64_t> inputs;
    for (const graph::ValueType* type : op.inputs)
      inputs.push_back(type ? axis - (out.rank() - type->shape.rank()) : -1);
    add_cut(cuts, op, out[axis], inputs, std::vector<std::int64_t>(op.outputs.size(), axis));
  }
  return cuts;
}

Cuts optimizer(const Operation& op) {
  for (const graph::ValueType* type : op.outputs)
    if (type && type->shape != op.output()) return {};
  return pointwise(op);
}

// Every axis but one: softmax and its kin.
Cuts softmax(const Operation& op) {
  Cuts cuts;
  const int rank = op.input(0).rank(), axis = normalize_axis(op.attributes->integer("axis", -1), rank);
  for (int i = 0; i < rank; ++i)
    if (i != axis) add_cut(cuts, op, op.input(0)[i], {i}, std::vector<std::int64_t>(op.outputs.size(), i));
  return cuts;
}

// The axes in front of the normalised ones.
Cuts layer_norm(const Operation& op) {
  Cuts cuts;
  const int axis = normalize_axis(op.attributes->integer("axis", -1), op.input(0).rank());
  for (int i = 0; i < axis; ++i)
    add_cut(cuts, op, op.input(0)[i], {i}, std::vector<std::int64_t>(op.outputs.size(), i));
  return cuts;
}

// Axes of the data before and behind the gathered one, and those of the indices.
Cuts gather(const Operation& op) {
  Cuts cuts;
  const int axis = normalize_axis(op.attributes->integer("axis", 0), op.input(0).rank());
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
  if (op.attributes->integer("layout", 0) != 0 || op.has(4)) return cuts;
  std::vector<std::int64_t> inputs{1, -1, -1, -1, -1, 1, 1};
  inputs.resize(op.inputs.size());
  if (op.inputs.size() > 7) inputs[7] = -1;
  add_cut(cuts, op, op.input(0)[1], inputs, {2, 1, 1});
  return cuts;
}

std::span<const CutRule> general_cut_rules() {
  static const CutRule rules[] = {
      {pointwise, {pointwise_operators.begin(), pointwise_operators.end()}},
      {optimizer, {"superstep.Sgd", "superstep.Adam"}},
      {softmax, {"Softmax", "LogSoftmax", "Hardmax"}},
      {layer_norm, {"LayerNormalization", "RMSNormalization"}},
      {gather, {"Gather"}},
      {recurrent, {"LSTM", "GRU", "RNN"}},
  };
  return rules;
}

}  // namespace

Cut empty_cut(const Operation& op, std::int64_t units) {
  Cut cut;
  cut.units = units;
  cut.inputs.resize(op.inputs.size());
  cut.outputs.resize(op.outputs.size());
  return cut;
}

Cut* add_cut(Cuts& cuts, const Operation& op, std::int64_t units, const std::vector<std::int64_t>& inputs,
             const std::vector<std::int64_t>& outputs) {
  if (units <= 1) return nullptr;
  Cut cut = empty_cut(op, units);
  bool fits = true;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    fits = fits && follow(op.inputs, cut.inputs, i, inputs[i], units);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    fits = fits && follow(op.outputs, cut.outputs, i, outputs[i], units);
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    fits = fits && (!op.outputs[i] || cut.outputs[i].axis >= 0);  // every part makes results of its own
  return fits ? &cuts.axes.emplace_back(std::move(cut)) : nullptr;
}

Cut* add_summed_cut(Cuts& cuts, const Operation& op, std::int64_t units,
                    const std::vector<std::int64_t>& inputs) {
  if (units <= 1) return nullptr;
  Cut cut = empty_cut(op, units);
  cut.summed = true;
  cut.role = CutRole::summed;
  bool fits = true;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    fits = fits && follow(op.inputs, cut.inputs, i, inputs[i], units);
  return fits ? &cuts.axes.emplace_back(std::move(cut)) : nullptr;
}

void add_window_cuts(Cuts& cuts, const Operation& op, std::size_t follower, bool is_input, bool summed) {
  for (std::size_t i = 0; i < cuts.windows.size(); ++i) {
    const Shape& shape = is_input ? op.input(follower) : op.output(follower);
    const int axis = static_cast<int>(i) + 2;
    if (shape[axis] <= 1) continue;
    Cut cut = empty_cut(op, shape[axis]);
    (is_input ? cut.inputs : cut.outputs)[follower].axis = axis;
    cut.window = static_cast<int>(i);
    cut.summed = summed;
    cut.role = summed ? CutRole::summed : CutRole::row;
    cuts.axes.push_back(std::move(cut));
  }
}

Operation operation_of(const graph::Graph& graph, const graph::Node& node) {
  Operation operation;
  operation.node = &node;
  operation.attributes = &node.attributes;
  for (const graph::ValueId id : node.inputs) {
    operation.inputs.push_back(id.valid() ? &graph.type(id) : nullptr);
    const bool known = id.valid() && graph.value(id).kind == graph::ValueKind::constant;
    operation.constants.push_back(known ? &graph.value(id).data : nullptr);
    const bool made = id.valid() && graph.value(id).kind == graph::ValueKind::computed;
    operation.producers.push_back(made ? &graph.node(graph.value(id).producer) : nullptr);
  }
  for (const graph::ValueId id : node.outputs)
    operation.outputs.push_back(id.valid() ? &graph.type(id) : nullptr);
  return operation;
}

Cuts cuts_of(const Operation& operation) {
  if (operation.outputs.empty() || !operation.outputs[0] || !operation.has(0)) return {};
  for (const auto family :
       {general_cut_rules(), product_cut_rules(), reduction_cut_rules(), pooling_cut_rules()})
    for (const CutRule& rule : family)
      if (std::find(rule.operators.begin(), rule.operators.end(), operation.node->op) != rule.operators.end())
        return rule.cuts(operation);
  return {};
}

bool is_pointwise(std::string_view op) {
  return std::find(pointwise_operators.begin(), pointwise_operators.end(), op) != pointwise_operators.end() ||
         op == "superstep.Sgd" || op == "superstep.Adam";
}

}  // namespace superstep::target::ipu
