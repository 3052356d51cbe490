// How long a step would take on more threads than this machine has processors: the plan for so many threads,
// walked through with the times that its steps take on one.
//
// What is walked through is the schedule that the engine runs (docs/cpu/threads.md): groups of micro-batches
// that threads take one at a time, or all groups in step, where a step is divided into parts, taken by one
// thread for all, or run by each group alone. Measured: the time of each step, by one thread; what it costs
// to call a thread and to wait for it; the rate of the memory. Assumed: each thread has a processor like this
// one's, with caches of its own, on one socket. What cannot be measured here lies between two bounds: see
// ThreadCosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/lab/profile/profile.h"

namespace superstep::lab {

// What lies between the threads of a machine.
struct ThreadCosts {
  double calling = 0;      // s: to call a second thread and to wait for it
  double each = 0;         // s more for every further thread
  double memory_rate = 0;  // B/s: of all processors together
  double last_cache = 0;   // B: the last level of the caches, of all together
  double one_rate =
      0;  // B/s that one thread moves at most: in its time no more can have come from the memory
};

// What was measured of it here, and the better and the worse that a larger machine may have.
struct MeasuredCosts {
  double calling = 0, each_low = 0, each_high = 0, memory_rate = 0, last_cache = 0;
  int processors = 1;  // that it was measured with

  ThreadCosts better(int threads) const;  // memory's rate and cache grow with the processors
  ThreadCosts worse() const;              // they stay
};
// Takes a second. With fewer than four processors the cost of a further thread is not measured but taken from
// 40 to 250 ns, what processors take to see each other's writes (docs/figures.md).
MeasuredCosts measure_thread_costs();

// Where the time of a run goes, in seconds of the run; their sum is its time.
struct SimulatedTime {
  double shared = 0;   // all work over all threads: what a perfect division would take
  double alone = 0;    // more, for what one thread does while others wait for it
  double uneven = 0;   // more, where groups or parts do not divide evenly by threads
  double calling = 0;  // calling threads and waiting for the last
  double memory = 0;   // more, where the memory's rate is the limit

  double seconds() const { return shared + alone + uneven + calling + memory; }
};

struct SimulatedRun {
  int threads = 1;
  std::int64_t micro_batch = 0;
  std::size_t groups = 0;
  bool in_step = false;
  SimulatedTime low, high;
  double measured = 0;  // s, by as many threads as these; 0: there are not as many processors

  // What costs most beyond the work itself: "memory", "uneven shares", "one thread alone", "calling threads",
  // "-" below 2 %.
  const char* limit() const;
};

// One run of `planned`, the plan for its number of threads. Its steps have the seconds that one thread took
// (PlanStep::seconds).
SimulatedTime simulate(const target::PlanSummary& planned, const ThreadCosts& costs);

// The model on each number of threads, and on one, in order. What a step takes on one thread is measured for
// each micro-batch that comes up; runs on as many threads as there are processors are measured, too. Throws
// Error as measure_profile does, and (unsupported) where the plan for more threads has other steps than that
// for one.
std::vector<SimulatedRun> simulate_threads(const target::Target& target, const ProfiledModel& model,
                                           const ProfileSettings& settings, std::vector<int> threads,
                                           const MeasuredCosts& costs);

// A table; times as fast as the first.
std::string simulated_text(const std::vector<SimulatedRun>& runs, std::int64_t batch,
                           const MeasuredCosts& costs);

}  // namespace superstep::lab
