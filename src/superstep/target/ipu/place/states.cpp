#include "superstep/target/ipu/place/states.h"

#include <algorithm>
#include <set>

namespace superstep::target::ipu {
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
  values.place_all_waiting();
  std::vector<NextState> list;
  for (const graph::Update& update : graph.updates())
    if (update.next.valid() && update.next != update.state &&
        !(values.replaced_by(update.next) && values.shares_variable(update.next, update.state)))
      list.push_back(
          {graph.value(update.state).name, values.tensor(update.next), values.tensor(update.state)});
  values.place_all_waiting();  // constants
  add_new_states(device, std::move(list), program);
}

void add_new_states(bsp::Graph& device, std::vector<NextState> list, bsp::Sequence& program) {
  std::set<bsp::VariableId> changed;
  for (const NextState& one : list)
    for (const bsp::Region& region : one.state.view().regions()) changed.insert(region.variable);
  for (NextState& one : list) {
    const auto regions = one.next.view().regions();
    if (std::none_of(regions.begin(), regions.end(),
                     [&](const bsp::Region& region) { return changed.contains(region.variable); }))
      continue;
    const bsp::Tensor kept = device.clone(one.next, one.name + "/next", bsp::CloneMethod::create_new_order);
    program.add(bsp::Copy(one.next, kept));
    one.next = kept;
  }
  for (const NextState& one : list)
    if (one.state.num_elements() > 0) program.add(bsp::Copy(one.next, one.state));
}

}  // namespace superstep::target::ipu
