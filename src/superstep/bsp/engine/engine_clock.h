// Cycles as a run goes on: a clock a chip of every replica, sums, and the first events. Chips that do not
// take part in a step go on with their own; steps that leave a chip are met by all.
#pragma once

#include <span>
#include <vector>

#include "superstep/bsp/profile/profile.h"

namespace superstep::bsp {

class RunClock {
 public:
  RunClock(std::span<const StepProfile> steps, std::uint32_t replicas, std::uint32_t chips,
           std::size_t events)
      : steps_(steps), clocks_(replicas, std::vector<std::uint64_t>(chips)), event_limit_(events) {
    run_.times.resize(steps.size());
    run_.active.resize(chips);
  }

  // A step ran on these replicas; `together`: they met at it, and go on at one time.
  void step(std::uint32_t step, std::span<const std::uint32_t> replicas, bool together = false);
  // What has happened since `mark` happens `times` times more. For timing only, where turns are alike.
  struct Mark {
    std::vector<std::uint64_t> clocks, times, active;
    StepCost cost;
  };
  Mark mark() const { return {clocks_[0], run_.times, run_.active, run_.cost}; }
  void repeat(const Mark& mark, std::uint64_t times);

  // The latest of the replica's chips.
  std::uint64_t now(std::uint32_t replica) const;

  bool recording() const { return run_.events.size() < event_limit_; }
  std::size_t events() const { return run_.events.size(); }
  void assume() { run_.assumed = true; }
  RunProfile finish(int program);

 private:
  std::uint64_t ready(const StepProfile& step, std::uint32_t replica) const;

  std::span<const StepProfile> steps_;
  std::vector<std::vector<std::uint64_t>> clocks_;  // by replica and chip
  std::size_t event_limit_;
  RunProfile run_;
};

void add(StepCost& sum, const StepCost& cost, std::uint64_t times = 1);

}  // namespace superstep::bsp
