// Databases of the Atomic Simulation Environment (ase.db) in SQLite: a row a configuration.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "superstep/file/atoms/configuration.h"

namespace superstep::data {

// Whether a file is one of SQLite.
bool is_sqlite(const std::filesystem::path& path);

// The same, or one of LMDB (file/atoms/ase_lmdb.h).
bool holds_ase_rows(const std::filesystem::path& path);

struct AseFrame {
  std::int64_t id = 0;  // of its row, as `ase db` shows it
  Configuration configuration;
  Labels labels;  // energy and forces as the calculator gave them; the virial is less the stress times the
                  // volume
};

// -dE/d(strain) of a stress in ASE's order (xx, yy, zz, yz, xz, xy; 6 numbers).
std::array<double, 9> virial_of_stress(const std::vector<double>& stress, const Cell& cell);

// All rows in the order of their ids, one at a time in memory, until `take` says false. Throws Error:
// bad_file (no such database, damaged, a row whose arrays have not the length that its atoms ask for),
// unsupported (periodic along some axes alone), naming file and row.
void for_ase_frames(const std::filesystem::path& path, const std::function<bool(AseFrame frame)>& take);

}  // namespace superstep::data
