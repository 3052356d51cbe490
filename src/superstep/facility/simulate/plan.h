// What is simulated: a workflow on a facility with every task in its place, as numbers and positions alone.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/facility/facility.h"
#include "superstep/facility/workflow.h"

namespace superstep::facility {

// Where a task goes: on so many devices of a partition, which takes so long for a firing.
struct Place {
  int partition = 0, devices = 1;
  Amount seconds;  // of a firing
};

struct Plan {
  const Facility* facility = nullptr;
  const Workflow* workflow = nullptr;
  std::vector<int> source_sites;
  std::vector<Place> places;         // of each task
  std::vector<double> power;         // W of a device, by partition; 0: not known
  std::vector<double> link_factors;  // of each link's rate: what if it were faster; empty: all 1
  std::vector<double> more_devices;  // of each partition's devices; empty: all 1
  bool no_queues = false;            // what if nothing waited in a queue
};

}  // namespace superstep::facility
