// The folder of a simulation.
//
//   run.json           what was asked for (study/settings.h)
//   start.xyz          the structure it began from
//   state.safetensors  positions, velocities, forces, box and neighbour lists' origin: where it goes on, bit
//   by bit trajectory.xyz     frames in extended XYZ, with velocities, forces, energy and stress thermo.csv
//   temperature, pressure, energies, volume last.xyz           the last frame, to begin another simulation
//   from what study/analysis.h and study/page.h make of these, and a lock
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "superstep/base/system/folder_lock.h"
#include "superstep/file/appended_file.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/md/motion/dynamics.h"
#include "superstep/md/start/structures.h"
#include "superstep/md/study/settings.h"

namespace superstep::md {

// Where a simulation goes on.
struct Checkpoint {
  State state;  // without masses, which the structure has
  Neighbours::Origin origin;
  std::uint64_t trajectory_bytes = 0, thermo_bytes = 0;
};

class RunFolder {
 public:
  // Makes the folder of a new simulation. Throws Error (invalid_argument) when it holds one already.
  static RunFolder create(const std::filesystem::path& folder, const Settings& settings,
                          const Structure& start);
  // Throws Error: not_found, bad_file.
  static RunFolder open(const std::filesystem::path& folder);
  // What create() would throw of a folder that holds a simulation.
  static void refuse_existing(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  const Settings& settings() const { return settings_; }
  void change_steps(std::int64_t steps);
  Structure start() const;

  // None where the simulation was stopped before its first. Throws Error (bad_file) where it does not belong
  // to `atoms` atoms.
  std::optional<Checkpoint> checkpoint(std::size_t atoms) const;
  void save(const Checkpoint& checkpoint) const;

  std::filesystem::path trajectory() const { return path_ / "trajectory.xyz"; }
  std::filesystem::path thermo() const { return path_ / "thermo.csv"; }
  std::filesystem::path last_frame() const { return path_ / "last.xyz"; }

 private:
  RunFolder(std::filesystem::path path, Settings settings);
  std::filesystem::path path_;
  Settings settings_;
  std::shared_ptr<FolderLock> lock_;
};

// A frame as the trajectory has it. Stress has the sign that ASE gives it: below zero under pressure.
data::XyzFrame frame_of(const State& state, const std::vector<int>& elements, const Reading& reading,
                        double timestep);

extern const char* const thermo_header;
std::string thermo_row(const State& state, const Reading& reading, double timestep);

}  // namespace superstep::md
