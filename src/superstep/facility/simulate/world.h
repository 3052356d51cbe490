// What a simulation asks of the world where its work is done for real: the same events, by the clock. Links,
// queues and machines that are not here take their simulated time; commands take their own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "superstep/facility/simulate/simulation.h"

namespace superstep::facility {

using ItemId = std::uint32_t;
inline constexpr ItemId no_item = static_cast<ItemId>(-1);

// An item that a firing takes at one of its inputs, or that it uses.
struct Taken {
  std::size_t door = 0;  // position among the task's inputs, or uses
  ItemId item = no_item;
  bool used = false;
};

// What calls before this one have done.
struct Restored {
  struct Item {
    ItemId id = no_item;
    double cut = 0, born = 0;
    std::vector<bool> taken_by;  // of each task: a firing that is done has taken it
  };
  double now = 0;                                       // where the clock goes on
  std::vector<std::vector<Item>> of_sources, of_tasks;  // in the order in which they were given
};

class World {
 public:
  virtual ~World() = default;

  virtual Restored restore() = 0;
  virtual double now() = 0;  // s of the simulation's time
  // Work begins. Whether a command does it, which wait() then tells the end of; else it takes its simulated
  // time.
  virtual bool begin(std::uint32_t firing, std::size_t task, double now, std::span<const Taken> items) = 0;
  // Whether it may not be over before its simulated time is: of a machine that is not here.
  virtual bool paced(std::size_t task) const = 0;
  // Until then, or until a command has ended, which it tells. Throws Error: of a command that failed;
  // interrupted.
  virtual std::optional<std::uint32_t> wait(double until) = 0;
  // The item of a firing that has ended, or of a source.
  virtual ItemId give(std::uint32_t firing, std::size_t task, double now, const Course& course) = 0;
  virtual ItemId give_of_source(std::size_t source, double index, double now) = 0;
};

// As simulate(), one by one, by the clock of `world`.
Simulated run_in(World& world, const Plan& plan, const SimulationSettings& settings);

}  // namespace superstep::facility
