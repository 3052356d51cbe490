#include "superstep/target/ipu/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/op/definition.h"
#include "superstep/target/ipu/layout.h"
#include "superstep/target/ipu/vertex.h"

namespace superstep::target::ipu {
namespace {

std::string place_of(const graph::Node& node) { return fmt::format("node '{}' ({})", node.name, node.op); }

// Elements that a part sees of a tensor.
bsp::Tensor slice_of(bsp::Tensor tensor, const Cuts& cuts, const PartRange& range, bool input,
                     std::size_t i) {
  for (std::size_t a = 0; a < cuts.axes.size(); ++a) {
    const CutOperand& operand = input ? cuts.axes[a].inputs[i] : cuts.axes[a].outputs[i];
    if (operand.axis < 0) continue;
    const std::int64_t begin = range[a].begin * operand.chunk, end = range[a].end * operand.chunk;
    if (cuts.flat) return tensor.flatten().slice(begin, end);
    tensor = tensor.slice(begin, end, operand.axis);
  }
  return tensor;
}

class GraphLowering {
 public:
  GraphLowering(const graph::Graph& graph, const bsp::Target& target, const machine::ipu::Hardware& hardware)
      : graph_(graph), hardware_(hardware), out_{bsp::Graph(target), bsp::Sequence(), {}} {}

  LoweredGraph run() {
    inputs_and_states();
    for (const graph::Node& node : graph_.nodes()) lower(node);
    outputs_and_updates();
    return std::move(out_);
  }

 private:
  bsp::Graph& graph() { return out_.graph; }

  bsp::Tensor variable(const std::string& name, const graph::ValueType& type) {
    if (!bsp::is_device_type(type.element))
      throw Error(ErrorCode::unsupported, fmt::format("a tile does not have {}", name_of(type.element)),
                  "value " + name, "use f32 or f16");
    return graph().add_variable(type.element, type.shape, name);
  }

  void inputs_and_states() {
    for (const graph::ValueId id : graph_.inputs()) {
      const graph::Value& value = graph_.value(id);
      const bsp::Tensor tensor = variable(value.name, value.type);
      graph().map_linearly(tensor, 4);
      tensors_[id] = tensor;
      if (tensor.num_elements() == 0) continue;
      const bsp::DataStream stream =
          graph().add_host_to_device_fifo("in:" + value.name, value.type.element, tensor.num_elements());
      out_.program.add(bsp::Copy(stream, tensor, value.name));
    }
    for (const graph::ValueId id : graph_.states()) {
      const graph::Value& value = graph_.value(id);
      const bsp::Tensor tensor = variable(value.name, value.type);
      graph().map_linearly(tensor, 4);
      graph().set_initial_value(tensor, value.data);
      graph().create_host_write(value.name, tensor);
      graph().create_host_read(value.name, tensor);
      tensors_[id] = tensor;
    }
  }

  bsp::Tensor tensor(graph::ValueId id) {
    const auto found = tensors_.find(id);
    if (found != tensors_.end()) return found->second;
    const graph::Value& value = graph_.value(id);
    if (value.kind != graph::ValueKind::constant)
      throw Error(ErrorCode::internal, "a value is used before it is made", "value " + value.name);
    if (!bsp::is_device_type(value.type.element)) variable(value.name, value.type);  // says why
    const bsp::Tensor constant = graph().add_constant(value.data, value.name);
    graph().map_linearly(constant, 4);
    return tensors_[id] = constant;
  }

  void lower(const graph::Node& node) {
    const op::Definition& definition = op::get(node.op);
    const Operation operation = operation_of(graph_, node);
    const auto views =
        layout_views(operation, graph(), [&](std::size_t i) { return tensor(node.inputs[i]); });
    if (views) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (node.outputs[i].valid()) tensors_[node.outputs[i]] = (*views)[i];
      out_.steps.push_back({{.node = node.name, .op = node.op, .kernel = "view: no data moves"}, {}});
      return;
    }
    if (!definition.evaluate)
      throw Error(ErrorCode::unsupported, "no evaluation for a vertex to run", place_of(node),
                  "run it on the cpu target");
    try {
      compute(node, definition, operation);
    } catch (const Error& error) {
      throw error.in(place_of(node));
    }
  }

  void compute(const graph::Node& node, const op::Definition& definition, const Operation& operation) {
    const Partition partition = choose_partition(hardware_, definition, operation, graph().num_tiles());
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i].valid())
        tensors_[node.outputs[i]] =
            variable(graph_.value(node.outputs[i]).name, graph_.type(node.outputs[i]));
    const std::string name =
        fmt::format("{}/{}#{}", node.name.empty() ? "node" : node.name, node.op, out_.steps.size());
    const bsp::ComputeSet set = graph().add_compute_set(name);
    const std::int64_t count = partition.count(),
                       stride = std::max<std::int64_t>(1, graph().num_tiles() / count);
    for (std::int64_t part = 0; part < count; ++part)
      add_part(set, operation, definition, partition, part, static_cast<std::uint32_t>(part * stride));
    for (const graph::ValueId id : node.outputs)  // nothing to compute: still on a tile
      if (id.valid() && graph_.type(id).shape.element_count() == 0) graph().set_tile_mapping(tensors_[id], 0);
    out_.program.add(bsp::Execute(set, name));
    const op::Cost cost = op::cost(graph_, node);
    out_.steps.push_back(
        {{.node = node.name,
          .op = node.op,
          .kernel = count == 1 ? std::string("one vertex")
                               : fmt::format("{} vertices", format_count(static_cast<double>(count))),
          .refusals = refusals(partition, count),
          .flops = cost.flops,
          .bytes = cost.bytes},
         name});
  }

  static std::vector<std::string> refusals(const Partition& partition, std::int64_t count) {
    if (count > 1) return {};
    if (partition.cuts.axes.empty()) return {"parts on many tiles: there is no rule that cuts this operator"};
    return {"parts on many tiles: one is not slower"};
  }

  void add_part(bsp::ComputeSet set, const Operation& operation, const op::Definition& definition,
                const Partition& partition, std::int64_t number, std::uint32_t tile) {
    const graph::Node& node = *operation.node;
    const PartRange range = part_range(partition, number);
    const PartShape shape = part_shape(operation, partition, range);
    const std::string& vertex_class = class_of(operation, definition, shape);
    std::vector<bsp::Connection> connections;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (operation.inputs[i] && !is_known(operation, definition, i))
        connections.emplace_back(input_field(i),
                                 slice_of(tensor(node.inputs[i]), partition.cuts, range, true, i));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!operation.outputs[i]) continue;
      const bsp::Tensor out = slice_of(tensors_[node.outputs[i]], partition.cuts, range, false, i);
      graph().set_tile_mapping(out, tile);
      connections.emplace_back(output_field(i), out);
    }
    graph().set_tile_mapping(
        graph().add_vertex(set, vertex_class, std::span<const bsp::Connection>(connections)), tile);
  }

  static bool is_known(const Operation& operation, const op::Definition& definition, std::size_t i) {
    return operation.constants[i] && i < 32 && (definition.shape_inputs >> i & 1u);
  }

  // One class for all parts of a node that have the same shape.
  const std::string& class_of(const Operation& operation, const op::Definition& definition,
                              const PartShape& shape) {
    std::string key = fmt::format("{}", static_cast<const void*>(operation.node));
    for (const auto* list : {&shape.inputs, &shape.outputs})
      for (const Shape& one : *list) key += to_string(one);
    const auto [place, added] = classes_.emplace(key, std::string());
    if (!added) return place->second;
    place->second = fmt::format("{}#{}", operation.node->op, classes_.size());
    auto part = std::make_shared<OperatorPart>();
    part->definition = &definition;
    part->attributes = shape.attributes;
    for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
      Operand operand;
      if (operation.inputs[i])
        operand = {true, {operation.inputs[i]->element, shape.inputs[i]}, std::nullopt};
      if (operand.present && is_known(operation, definition, i)) operand.known = *operation.constants[i];
      part->inputs.push_back(std::move(operand));
    }
    double elements = 0, whole = 0;
    for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
      Operand operand;
      if (operation.outputs[i]) {
        operand = {true, {operation.outputs[i]->element, shape.outputs[i]}, std::nullopt};
        elements += static_cast<double>(shape.outputs[i].element_count());
        whole += static_cast<double>(operation.output(i).element_count());
      }
      part->outputs.push_back(std::move(operand));
    }
    const double flops = whole > 0 ? op::cost(graph_, *operation.node).flops * elements / whole : 0;
    graph().add_codelets(
        {operator_vertex(place->second, std::move(part), cycles_of(hardware_, operation, shape),
                         static_cast<std::uint64_t>(flops))});
    return place->second;
  }

  void outputs_and_updates() {
    for (const graph::Output& output : graph_.outputs()) {
      const bsp::Tensor value = tensor(output.value);
      if (value.num_elements() == 0) continue;
      const bsp::DataStream stream =
          graph().add_device_to_host_fifo("out:" + output.name, value.element_type(), value.num_elements());
      out_.program.add(bsp::Copy(value, stream, output.name));
    }
    // A new value that is a view of a state must be taken before any state changes.
    std::vector<std::pair<bsp::Tensor, bsp::Tensor>> copies;
    for (const graph::Update& update : graph_.updates()) {
      if (!update.next.valid() || update.next == update.state) continue;
      bsp::Tensor next = tensor(update.next);
      if (reads_state(next)) {
        const bsp::Tensor kept = graph().clone(next, graph_.value(update.state).name + "/next",
                                               bsp::CloneMethod::create_new_order);
        out_.program.add(bsp::Copy(next, kept));
        next = kept;
      }
      copies.emplace_back(next, tensors_[update.state]);
    }
    for (const auto& [next, state] : copies)
      if (state.num_elements() > 0) out_.program.add(bsp::Copy(next, state));
  }

  bool reads_state(const bsp::Tensor& tensor) {
    std::set<bsp::VariableId> states;
    for (const graph::ValueId id : graph_.states())
      for (const bsp::Region& region : tensors_[id].view().regions()) states.insert(region.variable);
    for (const bsp::Region& region : tensor.view().regions())
      if (states.contains(region.variable)) return true;
    return false;
  }

  const graph::Graph& graph_;
  const machine::ipu::Hardware& hardware_;
  LoweredGraph out_;
  std::map<graph::ValueId, bsp::Tensor> tensors_;
  std::map<std::string, std::string> classes_;  // of a node and shapes: the class's name
};

}  // namespace

LoweredGraph lower(const graph::Graph& graph, const bsp::Target& target,
                   const machine::ipu::Hardware& hardware) {
  return GraphLowering(graph, target, hardware).run();
}

}  // namespace superstep::target::ipu
