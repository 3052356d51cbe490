#include "superstep/target/ipu/lower/in_place.h"

#include <algorithm>
#include <set>

namespace superstep::target::ipu {

InPlaceUpdates::InPlaceUpdates(const graph::Graph& graph, std::vector<const graph::Node*> order)
    : graph_(graph), order_(std::move(order)) {
  std::set<graph::ValueId> several;
  for (const graph::Update& update : graph_.updates())
    if (update.next.valid() && !replaced_.emplace(update.next, update.state).second)
      several.insert(update.next);
  for (const graph::ValueId next : several) replaced_.erase(next);
}

void InPlaceUpdates::allow(std::size_t position, Values& values) const {
  for (const graph::ValueId next : order_[position]->outputs) {
    const auto found = next.valid() ? replaced_.find(next) : replaced_.end();
    if (found == replaced_.end() || graph_.type(next) != graph_.type(found->second)) continue;
    if (!is_read_after(position, found->second, values)) values.let_replace(next, found->second);
  }
}

// What is not made yet can only read the state through what is.
bool InPlaceUpdates::is_read_after(std::size_t position, graph::ValueId state, const Values& values) const {
  const auto shows = [&](graph::ValueId id) { return id.valid() && values.shares_variable(id, state); };
  for (std::size_t later = position + 1; later < order_.size(); ++later)
    if (std::ranges::any_of(order_[later]->inputs, shows)) return true;
  return std::ranges::any_of(graph_.outputs(), [&](const auto& output) { return shows(output.value); }) ||
         std::ranges::any_of(graph_.updates(), [&](const auto& update) { return shows(update.next); });
}

}  // namespace superstep::target::ipu
