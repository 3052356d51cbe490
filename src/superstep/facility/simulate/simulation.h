// A discrete-event simulation of a plan: items that move over shared links, tasks that wait for devices and
// queues, what breaks on the way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/facility/simulate/plan.h"

namespace superstep::facility {

struct SimulationSettings {
  std::uint64_t seed = 1;
  // 0: the usual course: times at their values, queues at their medians, nothing breaks. Others are drawn
  // from all that is uncertain: times and rates in their intervals, waits, failures.
  std::uint32_t draw = 0;
  // Items of a source that are simulated one by one; of a source with more, so many go together that no more
  // than this come. Throughput, end, cost and energy are the same; times of single items are then those of
  // such a group.
  std::int64_t most_items = 20'000;
  bool head = false;      // of long sources the first most_items alone, one by one: for times of items
  bool timeline = false;  // keep what was done when
};

// Where the time of an item went, along the newest of what it was made from.
struct Course {
  double born = 0;  // when that left its source
  // s: until others had come, in queues, for devices, at work, on links
  double gathered = 0, queued = 0, waited = 0, computed = 0, moved = 0;
  double total() const { return gathered + queued + waited + computed + moved; }
};

struct TaskFigures {
  double first = 0, last = 0;    // s at which it first started and last ended
  double firings = 0;            // of single items, grouped or not
  std::vector<float> latencies;  // s from the birth of what was newest in it to an item that it gave
  std::vector<float> ages;       // s of what it uses, at the start of each firing
  double without = 0;            // firings that started before there was anything to use
  Course slowest;                // of the item with the longest time
  int restarts = 0;              // after failures and ends of allotted time
};

struct Span {
  bool link = false;  // else a task
  int what = 0, partition = -1;
  double begin = 0, end = 0;
};

struct Simulated {
  double end = 0, cost = 0, energy = 0;
  bool energy_known = true;
  std::vector<TaskFigures> tasks;
  std::vector<double> device_seconds;              // at work, by partition
  std::vector<double> link_busy[2], network_busy;  // s, by link (forward, back) and site
  Course last;                                     // of the item that ended last
  std::vector<Span> timeline;                      // at most most_spans of each task and link
  std::uint64_t events = 0;
};

inline constexpr std::size_t most_spans = 2'000;  // of one row: more cannot be seen

// The same settings give the same bits. Throws Error: interrupted; unsupported where it does not come to an
// end within a hundred million events.
Simulated simulate(const Plan& plan, const SimulationSettings& settings);

// The whole workflow, and where sources have more than most_items the times of single items from a simulation
// of their first ones: of tasks that work item by item and keep up. Of those that do not the whole one has
// them.
Simulated simulate_whole_and_head(const Plan& plan, const SimulationSettings& settings);

// The value that a target is about; NaN where no item came.
double figure_of(const Target& target, const Simulated& simulated);

}  // namespace superstep::facility
