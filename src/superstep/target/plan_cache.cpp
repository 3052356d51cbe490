#include "superstep/target/plan_cache.h"

#include <algorithm>

namespace superstep::target {

// States stand in the graph before it is compiled: initial values that nobody wants are never made.
graph::Graph PlanCache::with_states(std::int64_t batch) const {
  graph::Graph graph = model_(batch);
  for (graph::ValueId id : graph.states())
    if (const auto found = states_.find(graph.value(id).name); found != states_.end())
      graph.set_data(id, found->second);
  return graph;
}

Executable& PlanCache::at(std::int64_t batch) {
  auto& plan = plans_[batch];
  if (!plan) {
    CompileOptions options = options_;
    options.batch = batch;
    if (options.micro_batch > 0 && batch % options.micro_batch != 0) options.micro_batch = 0;
    plan = target_.compile([this](std::int64_t size) { return with_states(size); }, options);
    const std::vector<std::string> known = plan->state_names();
    for (const auto& [name, value] : states_)
      if (std::ranges::find(known, name) == known.end()) plan->set_state(name, value);  // says what there is
  }
  return *plan;
}

void PlanCache::set_states(std::map<std::string, Tensor> states) {
  states_ = std::move(states);
  for (const auto& [batch, plan] : plans_)
    for (const auto& [name, value] : states_) plan->set_state(name, value);
}

}  // namespace superstep::target
