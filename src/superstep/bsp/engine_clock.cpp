#include "superstep/bsp/engine_clock.h"

#include <algorithm>

namespace superstep::bsp {
namespace {

StepCost difference(const StepCost& a, const StepCost& b) {
  return {a.sync - b.sync,
          a.exchange - b.exchange,
          a.global_exchange - b.global_exchange,
          a.host_exchange - b.host_exchange,
          a.compute - b.compute,
          a.control - b.control};
}

}  // namespace

void add(StepCost& sum, const StepCost& cost, std::uint64_t times) {
  sum.sync += times * cost.sync;
  sum.exchange += times * cost.exchange;
  sum.global_exchange += times * cost.global_exchange;
  sum.host_exchange += times * cost.host_exchange;
  sum.compute += times * cost.compute;
  sum.control += times * cost.control;
}

void RunClock::step(std::uint32_t step, std::span<const std::uint32_t> replicas, bool together) {
  const StepCost& cost = steps_[step].cost;
  std::uint64_t start = 0;
  if (together)
    for (const std::uint32_t replica : replicas) start = std::max(start, clocks_[replica]);
  if (replicas[0] == 0) {  // replica 0 stands for all in sums and events
    ++run_.times[step];
    add(run_.cost, cost);
    if (recording())
      run_.events.push_back({step, together ? start : clocks_[0]});
    else
      run_.truncated = true;
  }
  for (const std::uint32_t replica : replicas)
    clocks_[replica] = (together ? start : clocks_[replica]) + cost.total();
}

void RunClock::repeat(const Mark& mark, std::uint64_t times) {
  if (times == 0) return;
  clocks_[0] += (clocks_[0] - mark.clock) * times;
  for (std::size_t i = 0; i < run_.times.size(); ++i)
    run_.times[i] += (run_.times[i] - mark.times[i]) * times;
  add(run_.cost, difference(run_.cost, mark.cost), times);
  run_.truncated = true;
}

RunProfile RunClock::finish(int program) {
  run_.program = program;
  run_.cycles = *std::max_element(clocks_.begin(), clocks_.end());
  return std::move(run_);
}

}  // namespace superstep::bsp
