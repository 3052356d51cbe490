// What this machine could do at best: the floor under the time of a step.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "superstep/target/target.h"

namespace superstep::lab {

// The bandwidth of one thread while `threads` of them stream buffers that lie in a level of the memory.
struct LevelBandwidth {
  std::string name;      // "L1", "L2", "L3", "memory"
  std::size_t capacity;  // bytes that the level holds for one thread; the last one holds everything
  double bytes_per_second;
};

// Peaks of one thread, measured while all threads are busy: a core that has its neighbours at work.
struct MachineFloor {
  int threads = 1;
  double f32_flops = 0, bf16_flops = 0, i8_flops = 0;  // FLOP/s; 0: no such instruction
  std::vector<LevelBandwidth> levels;                  // nearest first; never empty

  double peak(ElementType arithmetic) const;  // of products on this type; that of f32 where there is none
  double bandwidth(double bytes) const;       // of the nearest level that holds so many bytes
  const LevelBandwidth& level(double bytes) const;
};

// Takes one to two seconds. Best of many short trials (lab/machine/rates.h).
MachineFloor measure_floor(int threads);

// No execution of the step can be faster on one thread: the larger of its operations at the peak and its
// compulsory bytes at the bandwidth of the nearest level that could hold them all.
struct StepFloor {
  double compute_seconds = 0, memory_seconds = 0;
  double seconds() const { return compute_seconds > memory_seconds ? compute_seconds : memory_seconds; }
  const char* bound() const { return compute_seconds > memory_seconds ? "compute" : "memory"; }
};
StepFloor floor_of(const target::PlanStep& step, const MachineFloor& machine);

}  // namespace superstep::lab
