#include "superstep/target/ipu/lowering.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "superstep/base/error.h"
#include "superstep/op/definition.h"
#include "superstep/target/ipu/layout.h"
#include "superstep/target/ipu/operator_lowering.h"
#include "superstep/target/ipu/values.h"

namespace superstep::target::ipu {
namespace {

std::string place_of(const graph::Node& node) { return fmt::format("node '{}' ({})", node.name, node.op); }

machine::ipu::Hardware with_tiles_of(machine::ipu::Hardware hardware, const bsp::Target& target) {
  hardware.tiles = target.num_tiles();
  return hardware;
}

class GraphLowering {
 public:
  GraphLowering(const graph::Graph& graph, const bsp::Target& target, const machine::ipu::Hardware& hardware,
                const LowerOptions& options)
      : graph_(graph),
        options_(options),
        uses_(graph.use_counts()),
        hardware_(with_tiles_of(hardware, target)),
        out_{bsp::Graph(target), bsp::Sequence(), {}},
        values_(graph, out_.graph),
        operators_(graph, hardware_, out_.graph, values_) {}

  LoweredGraph run() {
    inputs_and_states();
    const auto start = std::chrono::steady_clock::now();
    for (const graph::Node& node : graph_.nodes()) {
      lower(node);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (taken.count() > options_.seconds)
        throw Error(ErrorCode::unsupported,
                    fmt::format("lowering took more than {:g} s, for {} of {} nodes", options_.seconds,
                                out_.steps.size(), graph_.node_count()),
                    "graph " + graph_.name(), "take a smaller batch, or fewer layers");
      if (options_.progress) options_.progress(out_.steps.size(), graph_.node_count());
    }
    outputs_and_updates();
    values_.place_all_waiting();
    return std::move(out_);
  }

 private:
  bsp::Graph& graph() { return out_.graph; }

  void inputs_and_states() {
    for (const graph::ValueId id : graph_.inputs()) {
      const graph::Value& value = graph_.value(id);
      const bsp::Tensor tensor = values_.plain_variable(value.name, value.type);
      values_.add_waiting(id, tensor);
      if (tensor.num_elements() == 0) continue;
      const bsp::DataStream stream =
          graph().add_host_to_device_fifo("in:" + value.name, value.type.element, tensor.num_elements());
      out_.program.add(bsp::Copy(stream, tensor, value.name));
    }
    for (const graph::ValueId id : graph_.states()) {
      const graph::Value& value = graph_.value(id);
      const bsp::Tensor tensor = values_.plain_variable(value.name, value.type);
      if (options_.data)
        graph().set_initial_value(tensor, value.data);
      else
        graph().set_initial_value(tensor, 0.0);
      graph().create_host_write(value.name, tensor);
      graph().create_host_read(value.name, tensor);
      values_.add_waiting(id, tensor);
    }
  }

  void lower(const graph::Node& node) {
    Operation operation = operation_of(graph_, node);
    for (std::size_t i = 1; i < node.outputs.size(); ++i)  // nobody reads it: nobody makes it
      if (node.outputs[i].valid() && uses_[node.outputs[i].index()] == 0) operation.outputs[i] = nullptr;
    const auto views =
        layout_views(operation, graph(), [&](std::size_t i) { return values_.tensor(node.inputs[i]); });
    if (views) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (node.outputs[i].valid()) values_.set(node.outputs[i], (*views)[i]);
      out_.steps.push_back({{.node = node.name, .op = node.op, .kernel = "view: no data moves"}, {}, {}});
      return;
    }
    if (!op::get(node.op).evaluate)
      throw Error(ErrorCode::unsupported, "no evaluation for a vertex to run", place_of(node),
                  "run it on the cpu target");
    const std::string name =
        fmt::format("{}/{}#{}", node.name.empty() ? "node" : node.name, node.op, out_.steps.size());
    try {
      out_.steps.push_back(operators_.lower(node, operation, name, out_.program));
    } catch (const Error& error) {
      throw error.in(place_of(node));
    }
  }

  void outputs_and_updates() {
    for (const graph::Output& output : graph_.outputs()) {
      const bsp::Tensor value = values_.tensor(output.value);
      if (value.num_elements() == 0) continue;
      const bsp::DataStream stream =
          graph().add_device_to_host_fifo("out:" + output.name, value.element_type(), value.num_elements());
      out_.program.add(bsp::Copy(value, stream, output.name));
    }
    // A new value that is a view of a state must be taken before any state changes.
    std::vector<std::pair<bsp::Tensor, bsp::Tensor>> copies;
    for (const graph::Update& update : graph_.updates()) {
      if (!update.next.valid() || update.next == update.state) continue;
      bsp::Tensor next = values_.tensor(update.next);
      if (reads_state(next)) {
        values_.place_all_waiting();
        const bsp::Tensor kept = graph().clone(next, graph_.value(update.state).name + "/next",
                                               bsp::CloneMethod::create_new_order);
        out_.program.add(bsp::Copy(next, kept));
        next = kept;
      }
      copies.emplace_back(next, values_.tensor(update.state));
    }
    for (const auto& [next, state] : copies)
      if (state.num_elements() > 0) out_.program.add(bsp::Copy(next, state));
  }

  bool reads_state(const bsp::Tensor& tensor) {
    std::set<bsp::VariableId> states;
    for (const graph::ValueId id : graph_.states())
      for (const bsp::Region& region : values_.tensor(id).view().regions()) states.insert(region.variable);
    for (const bsp::Region& region : tensor.view().regions())
      if (states.contains(region.variable)) return true;
    return false;
  }

  const graph::Graph& graph_;
  const LowerOptions& options_;
  const std::vector<int> uses_;
  const machine::ipu::Hardware hardware_;
  LoweredGraph out_;
  Values values_;
  OperatorLowering operators_;
};

}  // namespace

LoweredGraph lower(const graph::Graph& graph, const bsp::Target& target,
                   const machine::ipu::Hardware& hardware, const LowerOptions& options) {
  return GraphLowering(graph, target, hardware, options).run();
}

}  // namespace superstep::target::ipu
