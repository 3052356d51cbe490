#include "superstep/target/ipu/states.h"

#include <vector>

namespace superstep::target::ipu {
namespace {

bool reads_state(const graph::Graph& graph, Values& values, const bsp::Tensor& tensor) {
  std::set<bsp::VariableId> states;
  for (const graph::ValueId id : graph.states())
    for (const bsp::Region& region : values.tensor(id).view().regions()) states.insert(region.variable);
  for (const bsp::Region& region : tensor.view().regions())
    if (states.contains(region.variable)) return true;
  return false;
}

}  // namespace

void add_state(const graph::Graph& graph, graph::ValueId id, bsp::Graph& device, Values& values,
               const std::string& suffix, bool data) {
  const graph::Value& value = graph.value(id);
  const bsp::Tensor tensor = values.plain_variable(value.name + suffix, value.type);
  if (data)
    device.set_initial_value(tensor, value.data);
  else
    device.set_initial_value(tensor, 0.0);
  device.create_host_write(value.name + suffix, tensor);
  device.create_host_read(value.name + suffix, tensor);
  values.add_waiting(id, tensor);
}

void add_updates(const graph::Graph& graph, bsp::Graph& device, Values& values, bsp::Sequence& program) {
  // A new value that is a view of a state must be taken before any state changes.
  std::vector<std::pair<bsp::Tensor, bsp::Tensor>> copies;
  for (const graph::Update& update : graph.updates()) {
    if (!update.next.valid() || update.next == update.state) continue;
    bsp::Tensor next = values.tensor(update.next);
    if (reads_state(graph, values, next)) {
      values.place_all_waiting();
      const bsp::Tensor kept =
          device.clone(next, graph.value(update.state).name + "/next", bsp::CloneMethod::create_new_order);
      program.add(bsp::Copy(next, kept));
      next = kept;
    }
    copies.emplace_back(next, values.tensor(update.state));
  }
  for (const auto& [next, state] : copies)
    if (state.num_elements() > 0) program.add(bsp::Copy(next, state));
}

}  // namespace superstep::target::ipu
