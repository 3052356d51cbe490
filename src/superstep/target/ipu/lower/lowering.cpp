#include "superstep/target/ipu/lower/lowering.h"

#include <fmt/format.h>

#include <ctime>

#include "superstep/base/error.h"
#include "superstep/target/ipu/lower/in_place.h"
#include "superstep/target/ipu/lower/node_lowering.h"
#include "superstep/target/ipu/place/states.h"

namespace superstep::target::ipu {
namespace {

class GraphLowering {
 public:
  GraphLowering(const graph::Graph& graph, const bsp::Device& device, const machine::ipu::Hardware& hardware,
                const LowerOptions& options)
      : graph_(graph),
        options_(options),
        out_{.graph = bsp::Graph(device)},
        nodes_(graph, out_.graph, hardware),
        values_(nodes_.values()) {}

  LoweredGraph run() {
    inputs_and_states();
    const LoweringBudget budget(graph_, options_);
    const Fusion fusion(graph_);
    const InPlaceUpdates in_place(graph_, order_of(fusion));
    std::size_t position = 0;
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      if (fusion.is_inside(i)) continue;
      in_place.allow(position++, values_);
      nodes_.lower(graph_.node(graph::NodeId(i)), fusion.at(i), out_.program, out_.steps);
      budget.lowered(i + 1);
    }
    outputs_and_updates();
    values_.place_all_waiting();
    return std::move(out_);
  }

 private:
  bsp::Graph& graph() { return out_.graph; }

  std::vector<const graph::Node*> order_of(const Fusion& fusion) const {
    std::vector<const graph::Node*> order;
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      const FusedNode* fused = fusion.at(i);
      if (!fusion.is_inside(i)) order.push_back(fused ? &fused->node : &graph_.node(graph::NodeId(i)));
    }
    return order;
  }

  void inputs_and_states() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const graph::ValueId id = graph_.inputs()[i];
      const graph::Value& value = graph_.value(id);
      const bsp::Tensor tensor = values_.plain_variable(value.name, value.type);
      values_.add_waiting(id, tensor);
      if (tensor.num_elements() == 0) continue;
      const bsp::DataStream stream =
          graph().add_host_to_device_fifo("in:" + value.name, value.type.element, tensor.num_elements());
      out_.program.add(bsp::Copy(stream, tensor, value.name));
      out_.inputs.push_back({"in:" + value.name, i});
    }
    for (const graph::ValueId id : graph_.states()) {
      add_state(graph_, id, graph(), values_, {}, options_.data);
      out_.states[graph_.value(id).name] = {graph_.value(id).name};
    }
  }

  void outputs_and_updates() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const graph::Output& output = graph_.outputs()[i];
      const bsp::Tensor value = values_.tensor(output.value);
      if (value.num_elements() == 0) continue;
      const bsp::DataStream stream =
          graph().add_device_to_host_fifo("out:" + output.name, value.element_type(), value.num_elements());
      out_.program.add(bsp::Copy(value, stream, output.name));
      out_.outputs.push_back({"out:" + output.name, i});
    }
    add_updates(graph_, graph(), values_, out_.program);
  }

  const graph::Graph& graph_;
  const LowerOptions& options_;
  LoweredGraph out_;
  NodeLowering nodes_;
  Values& values_;
};

// Of this process, so that a busy machine does not change what comes out.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

LoweringBudget::LoweringBudget(const graph::Graph& graph, const LowerOptions& options)
    : graph_(graph), options_(options), start_(processor_seconds()) {}

void LoweringBudget::lowered(std::size_t nodes) const {
  if (processor_seconds() - start_ > options_.seconds)
    throw Error(ErrorCode::unsupported,
                fmt::format("lowering took more than {:g} s of processor time, for {} of {} nodes",
                            options_.seconds, nodes, graph_.node_count()),
                "graph " + graph_.name(), "take a smaller batch, or fewer layers");
  if (options_.progress) options_.progress(nodes, graph_.node_count());
}

LoweredGraph lower(const graph::Graph& graph, const bsp::Device& device,
                   const machine::ipu::Hardware& hardware, const LowerOptions& options) {
  return GraphLowering(graph, device, hardware, options).run();
}

}  // namespace superstep::target::ipu
