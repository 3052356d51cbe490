#include "superstep/lab/advise/changes.h"

#include <fmt/format.h>

#include <map>

#include "superstep/base/text.h"
#include "superstep/lab/advise/reasons.h"
#include "superstep/machine/rates/network_by_law.h"
#include "superstep/machine/rates/sums.h"
#include "superstep/transform/pipeline.h"

namespace superstep::lab {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Value;
using graph::ValueId;
using graph::ValueKind;

// What gains less is not worth another training (chosen).
constexpr double least_gain = 1.1;
// Channels of a group: what matrix units of most machines sum at a time (16 on IPUs, 8 to 64 on GPUs).
constexpr std::int64_t wider_group = 16;

// Are the convolution's groups of one channel each, and can they be of `size`?
bool is_widened(const Graph& graph, const graph::Node& node, std::int64_t size) {
  if (node.op != "Conv" || !node.inputs[1].valid()) return false;
  const Value& weights = graph.value(node.inputs[1]);
  const std::int64_t groups = node.attributes.integer("group", 1);
  const bool stored = weights.kind == ValueKind::state || weights.kind == ValueKind::constant;
  return stored && groups > size && groups % size == 0 && weights.type.shape[1] == 1 &&
         weights.type.shape[0] == groups;
}

std::map<ValueId, Shape> widened_weights(const Graph& graph, std::int64_t size) {
  std::map<ValueId, Shape> shapes;
  for (const graph::Node& node : graph.nodes())
    if (is_widened(graph, node, size)) {
      std::vector<std::int64_t> extents = graph.type(node.inputs[1]).shape.extents();
      extents[1] = size;
      shapes.emplace(node.inputs[1], Shape(std::move(extents)));
    }
  return shapes;
}

ValueId copied(Graph& to, const Value& value, const std::map<ValueId, Shape>& shapes, ValueId id) {
  const auto wider = shapes.find(id);
  Tensor data = wider == shapes.end() ? value.data : Tensor::generated(value.type.element, wider->second);
  switch (value.kind) {
    case ValueKind::input: return to.add_input(value.name, value.type);
    case ValueKind::state: return to.add_state(value.name, std::move(data));
    case ValueKind::constant: return to.add_constant(value.name, std::move(data));
    case ValueKind::computed: break;
  }
  return {};
}

void copy_node(const Graph& from, const graph::Node& node, std::int64_t size, std::vector<ValueId>& now,
               Graph& to) {
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(id.valid() ? now[id.index()] : ValueId{});
  std::vector<graph::ValueType> types;
  std::vector<std::string> names;
  for (const ValueId id : node.outputs) {
    types.push_back(id.valid() ? from.type(id) : graph::ValueType{});
    names.push_back(id.valid() ? from.value(id).name : std::string());
  }
  graph::Attributes attributes = node.attributes;
  if (is_widened(from, node, size)) attributes.set("group", node.attributes.integer("group") / size);
  const NodeId made =
      to.add_node(node.op, std::move(inputs), types, std::move(attributes), node.name, node.phase, names);
  for (std::size_t i = node.outputs.size(); i-- > 0;) {
    if (node.outputs[i].valid())
      now[node.outputs[i].index()] = to.node(made).outputs[i];
    else
      to.drop_output(made, static_cast<int>(i));
  }
}

// The model's graph, changed, on its way to a prediction.
Graph prepared(const run::Model& model, bool trains, std::int64_t batch, std::int64_t* added) {
  return transform::run_passes(with_wider_groups(model.as_described()(batch), wider_group, added),
                               model.passes(trains));
}

// A machine that is asked by law, about the changed model.
machine::Machine asked_again(const machine::Machine& machine, const run::Model& model, const Option& best) {
  if (!machine.by_law()) return machine;
  machine::NetworkByLaw network = *machine.by_law();
  const std::int64_t batch = best.settings.micro_batch;
  network.sums = machine::sums_of(prepared(model, false, batch, nullptr), static_cast<double>(batch));
  machine::Machine asked = machine;
  asked.set_by_law(std::make_shared<const machine::NetworkByLaw>(std::move(network)));
  return asked;
}

double gain_of(const machine::Machine& machine, const Graph& graph, const machine::PredictSettings& chosen,
               const Option& best, const SearchSettings& settings) {
  const Figure figure = figure_of(settings.goal, machine::predict(machine, graph, chosen), settings.context);
  if (!figure.known()) return 0;
  return larger_is_better(settings.goal) ? figure.value / best.figure.value
                                         : best.figure.value / figure.value;
}

}  // namespace

Graph with_wider_groups(const Graph& graph, std::int64_t size, std::int64_t* added) {
  const std::map<ValueId, Shape> shapes = widened_weights(graph, size);
  if (added) *added = 0;
  if (shapes.empty()) return graph;
  Graph changed(graph.name());
  std::vector<ValueId> now(graph.value_count());
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    if (const Value& value = graph.values()[i]; value.kind != ValueKind::computed)
      now[i] = copied(changed, value, shapes, ValueId(i));
  for (const graph::Node& node : graph.nodes()) copy_node(graph, node, size, now, changed);
  for (const graph::Output& output : graph.outputs())
    changed.add_output(output.name, now[output.value.index()]);
  for (const graph::Update& update : graph.updates())
    changed.set_update(now[update.state.index()], now[update.next.index()]);
  for (const auto& [id, shape] : shapes)
    if (added) *added += shape.element_count() - graph.type(id).shape.element_count();
  return changed;
}

std::vector<Change> changes_of(const machine::Machine& machine, const run::Model& model, bool trains,
                               const Option& best, const SearchSettings& settings) {
  std::vector<Change> changes;
  const auto keep = [&](std::string what, double gain, std::string note) {
    if (gain >= least_gain) changes.push_back({std::move(what), gain, std::move(note)});
  };
  std::int64_t added = 0;
  const Graph wider = prepared(model, trains, best.settings.micro_batch, &added);
  if (added > 0)
    keep(fmt::format("groups of {} channels in place of depthwise convolutions", wider_group),
         gain_of(asked_again(machine, model, best), wider, best.settings, best, settings),
         fmt::format("{} more weights, and a training anew", format_count(static_cast<double>(added))));
  if (bound_of(best) == std::string("host link") && best.settings.input_bytes == 0) {
    machine::PredictSettings bytes = best.settings;
    bytes.input_bytes = 1;
    const Graph as_it_is =
        trains ? model.training_step()(bytes.micro_batch) : model.inference()(bytes.micro_batch);
    keep("samples sent as bytes", gain_of(machine, as_it_is, bytes, best, settings),
         "where they are counts or gray levels");
  }
  return changes;
}

}  // namespace superstep::lab
