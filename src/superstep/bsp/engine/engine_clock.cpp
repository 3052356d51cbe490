#include "superstep/bsp/engine/engine_clock.h"

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

// When the last of a step's chips is there.
std::uint64_t RunClock::ready(const StepProfile& step, std::uint32_t replica) const {
  std::uint64_t start = 0;
  for (std::uint32_t chip = 0; chip < clocks_[replica].size(); ++chip)
    if (step.has_chip(chip)) start = std::max(start, clocks_[replica][chip]);
  return start;
}

void RunClock::step(std::uint32_t number, std::span<const std::uint32_t> replicas, bool together) {
  const StepProfile& step = steps_[number];
  const std::uint64_t cycles = step.cost.total();
  std::uint64_t latest = 0;
  if (together)
    for (const std::uint32_t replica : replicas) latest = std::max(latest, ready(step, replica));
  for (const std::uint32_t replica : replicas) {
    const std::uint64_t start = together ? latest : ready(step, replica);
    for (std::uint32_t chip = 0; chip < clocks_[replica].size(); ++chip)
      if (step.has_chip(chip)) {
        clocks_[replica][chip] = start + cycles;
        if (replica == 0) run_.active[chip] += cycles;
      }
    if (replica != 0) continue;  // replica 0 stands for all in sums and events
    ++run_.times[number];
    add(run_.cost, step.cost);
    if (recording())
      run_.events.push_back({number, start});
    else
      run_.truncated = true;
  }
}

std::uint64_t RunClock::now(std::uint32_t replica) const {
  return *std::ranges::max_element(clocks_[replica]);
}

void RunClock::repeat(const Mark& mark, std::uint64_t times) {
  if (times == 0) return;
  const auto more = [times](std::vector<std::uint64_t>& values, const std::vector<std::uint64_t>& before) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += (values[i] - before[i]) * times;
  };
  more(clocks_[0], mark.clocks);
  more(run_.times, mark.times);
  more(run_.active, mark.active);
  add(run_.cost, difference(run_.cost, mark.cost), times);
  run_.truncated = true;
}

RunProfile RunClock::finish(int program) {
  run_.program = program;
  for (const std::vector<std::uint64_t>& replica : clocks_)
    for (const std::uint64_t clock : replica) run_.cycles = std::max(run_.cycles, clock);
  return std::move(run_);
}

}  // namespace superstep::bsp
