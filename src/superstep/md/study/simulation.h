// A simulation in its folder: begun, gone on with, stopped and resumed with the same bits.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/md/study/run_folder.h"

namespace superstep::md {

struct SimulationOptions {
  int threads = 1;
  double checkpoint_seconds = 60;
};

// What a sitting did.
struct Sitting {
  std::int64_t from = 0, to = 0;  // steps
  std::size_t atoms = 0;
  double seconds = 0, force_seconds = 0, neighbour_seconds = 0, writing_seconds = 0;
  std::uint64_t list_builds = 0, pairs = 0;  // pairs in the lists at the end
  double timestep = 0;                       // fs
  double steps_per_second() const { return seconds > 0 ? static_cast<double>(to - from) / seconds : 0; }
  double ns_per_day() const;
  nlohmann::json parameters() const;

  std::string parameters_text = "{}";   // JSON of the force field
  std::vector<std::string> notes = {};  // what a user should know of box and cutoff
};

// The force field of the settings; `start` may be changed as its factory says. Throws Error
// (invalid_argument) with the nearest name, and what factories throw.
std::unique_ptr<ForceField> make_force_field(const Settings& settings, data::Configuration& start,
                                             int threads);

// Runs to the last step asked for. Throws Error: interrupted (all is kept; resumed by the same call),
// diverged (the last good frame is kept, as last.xyz and at the end of the trajectory), io.
Sitting simulate(RunFolder& folder, const SimulationOptions& options);

}  // namespace superstep::md
