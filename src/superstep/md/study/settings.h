// What a simulation is asked for, as its folder keeps it (run.json).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "superstep/md/motion/protocol.h"

namespace superstep::md {

struct Settings {
  std::string potential;                        // of the table, or the folder of a training run
  std::vector<std::string> potential_settings;  // NAME=VALUE
  std::string start;                            // where the structure came from, in words
  Protocol protocol;
  double velocity_kelvin = 300;  // K, of the velocities drawn at the start; below 0: those of the structure
  double relaxed_to = 0;         // eV/A: moved downhill first until no force is larger; 0: not
  double skin = 1;               // of neighbour lists, A
  std::int64_t steps = 10000, thermo_every = 10, frame_every = 100;
  std::int64_t equilibration = 0;  // steps at the start that no mean is taken of
};

nlohmann::json to_json(const Settings& settings);
// Throws Error (bad_file) that names the member and `where`.
Settings settings_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace superstep::md
