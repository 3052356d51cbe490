#include "superstep/target/ipu/cut/cut.h"

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/cut/cut_rules.h"

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

// ONNX's optimisers take several tensors; they are pointwise where those are of one shape.
Cuts optimizer(const Operation& op) {
  for (const graph::ValueType* type : op.outputs)
    if (type && type->shape != op.output()) return {};
  return pointwise(op);
}

// The result has the type of the second input.
Cuts cast_like(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  for (int axis = 0; axis < op.output().rank(); ++axis) add_cut(cuts, op, op.output()[axis], {axis}, {axis});
  return cuts;
}

std::span<const CutRule> general_cut_rules() {
  static const CutRule rules[] = {
      // Every element of their results, too, is made of those at its place, here or in other parts; to those
      // who fuse element-wise operators they are none.
      {pointwise, {"SwiGLU", "BitCast", "Binarizer", "superstep.PartsMean"}},
      {optimizer, {"superstep.Sgd"}, sgd_cycles},
      {optimizer, {"superstep.Adam"}, adam_cycles},
      {optimizer, {"superstep.Adamax", "superstep.RMSProp"}, adaptive_cycles},
      {optimizer, {"Adagrad", "Momentum", "Adam"}},
      {cast_like, {"CastLike"}},
  };
  return rules;
}

// A view is placed (place/layout.h), not computed.
bool is_computed_by_element(std::string_view op) {
  const op::Traits& traits = op::traits_of(op);
  return traits.elementwise && traits.view == op::View::none;
}

}  // namespace

const CutRule* rule_of(std::string_view op) {
  static const CutRule by_element{pointwise, {}};
  if (is_computed_by_element(op)) return &by_element;
  for (const auto family : {general_cut_rules(), product_cut_rules(), reduction_cut_rules(),
                            pooling_cut_rules(), line_cut_rules(), index_cut_rules(), sequence_cut_rules(),
                            resample_cut_rules(), random_cut_rules(), quantized_cut_rules()})
    for (const CutRule& rule : family)
      if (std::find(rule.operators.begin(), rule.operators.end(), op) != rule.operators.end()) return &rule;
  return nullptr;
}

std::uint64_t part_cycles(const machine::ipu::Hardware& hardware, std::string_view op,
                          const PartTypes& types) {
  const CutRule* rule = rule_of(op);
  const std::int64_t cycles = rule && rule->cycles
                                  ? rule->cycles(hardware, types)
                                  : elementwise_cycles(hardware, op::traits_of(op).effort, types);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(cycles, 1));
}

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
                    const std::vector<std::int64_t>& inputs, const std::vector<std::int64_t>& outputs) {
  if (units <= 1) return nullptr;
  Cut cut = empty_cut(op, units);
  cut.summed = true;
  cut.role = CutRole::summed;
  bool fits = true;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    fits = fits && follow(op.inputs, cut.inputs, i, inputs[i], units);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    fits = fits && follow(op.outputs, cut.outputs, i, outputs[i], units);
  return fits ? &cuts.axes.emplace_back(std::move(cut)) : nullptr;
}

CutOperand reading(int axis, std::vector<bsp::Interval> reads) {
  CutOperand operand;
  operand.axis = axis;
  operand.reads = std::make_shared<const std::vector<bsp::Interval>>(std::move(reads));
  return operand;
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
  if (operation.outputs.empty() || !operation.outputs[0]) return {};
  if (!operation.inputs.empty() && !operation.has(0)) return {};
  const CutRule* rule = rule_of(operation.node->op);
  return rule ? rule->cuts(operation) : Cuts{};
}

std::string_view why_whole(std::string_view op) {
  static constexpr std::pair<std::string_view, std::string_view> reasons[] = {
      {"DynamicQuantizeLinear", "its scale is that of all elements"},
      {"NonMaxSuppression", "a box is kept or dropped by those before it"},
      {"superstep.KeptBoxes", "a box is kept or dropped by those before it"},
      {"NonZero", "where a result lies depends on all elements before it"},
      {"Unique", "where a result lies depends on all elements before it"},
  };
  for (const auto& [name, reason] : reasons)
    if (name == op) return reason;
  return rule_of(op) ? "no dimension that it can be cut along has more than one element"
                     : "there is no rule that cuts this operator";
}

bool is_pointwise(std::string_view op) {
  const CutRule* rule = rule_of(op);
  return rule && (rule->cuts == pointwise || rule->cuts == optimizer);
}

}  // namespace superstep::target::ipu
