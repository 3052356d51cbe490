// What waits in the queue of the device: launches and transfers, in the order of the program.
#pragma once

#include <memory>
#include <vector>

#include "superstep/openmp/plan.h"
#include "superstep/openmp/storage.h"

namespace superstep::openmp {

enum class CommandKind : std::uint8_t { launch, to_device, from_device };

struct Command {
  CommandKind kind = CommandKind::launch;
  int plan = -1;                     // of a launch: a number of a plan
  std::vector<DeviceArray*> arrays;  // of a launch: the region's; of a transfer: one
  std::int64_t begin = 0, end = 0;   // of a transfer: which elements
  std::vector<std::byte> data;       // to the device: as they were when the program said so
  std::byte* host = nullptr;         // from the device: where element `begin` goes
  // Of a launch whose scalars are not always the same: they are data of the run, not of the program, and are
  // sent when they are not those of the plan's launch before.
  std::vector<std::byte> scalars;
  bool scalars_vary = false, sends_scalars = false;
  std::shared_ptr<Command> instead;  // of a launch: what stands in for it when it cannot be dealt
};

// Numbers in a row as turns: `count` times the numbers [begin, begin + period) of the row.
struct Turns {
  std::size_t begin = 0, period = 1, count = 1;
};
// Periods of up to 8, as the swaps of pointers in time loops make them; the longest stretch wins, then the
// shortest period.
std::vector<Turns> find_turns(const std::vector<int>& row);

}  // namespace superstep::openmp
