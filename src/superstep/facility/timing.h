// Where each task can run and how long a firing takes there: as the files state it, or as a model's step is
// predicted on the partition's machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "superstep/facility/simulate/plan.h"

namespace superstep::facility {

struct Choice {
  Place place;
  std::string how;  // "stated", "predicted: gc200, f16, micro-batch 512, 4 units"
};

struct TaskChoices {
  std::vector<Choice> choices;
  std::vector<std::string> refused;  // "edge: does not fit (1.2 GB of 0.9 GB)"
};

struct TimingSettings {
  int threads = 1;
  std::function<void(const std::string& what)> progress;  // is told of what takes seconds
};

// Throws Error: invalid_argument for names that the facility does not have, and for tasks that can run
// nowhere, with every reason; what predictions throw.
std::vector<TaskChoices> choices_of(const Workflow& workflow, const Facility& facility,
                                    const TimingSettings& settings);

// W of a device of each partition: stated, else its machine's data sheet; 0: not known.
std::vector<double> power_of(const Facility& facility);

// Sites of the workflow's sources. Throws Error (invalid_argument).
std::vector<int> sites_of_sources(const Workflow& workflow, const Facility& facility);

}  // namespace superstep::facility
