#include "superstep/target/plan_cache.h"

namespace superstep::target {

Executable& PlanCache::at(std::int64_t batch) {
  auto& plan = plans_[batch];
  if (!plan) {
    CompileOptions options = options_;
    options.batch = batch;
    if (options.micro_batch > 0 && batch % options.micro_batch != 0) options.micro_batch = 0;
    plan = target_.compile(model_, options);
    for (const auto& [name, value] : states_) plan->set_state(name, value);
  }
  return *plan;
}

void PlanCache::set_states(std::map<std::string, Tensor> states) {
  states_ = std::move(states);
  for (const auto& [batch, plan] : plans_)
    for (const auto& [name, value] : states_) plan->set_state(name, value);
}

}  // namespace superstep::target
