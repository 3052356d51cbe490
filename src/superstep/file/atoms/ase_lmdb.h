// Databases of the Atomic Simulation Environment's rows in LMDB (*.aselmdb), as fairchem writes them: an
// object of JSON a configuration, packed by zlib.
#pragma once

#include <filesystem>
#include <functional>

#include "superstep/file/atoms/ase_database.h"

namespace superstep::data {

// As for_ase_frames() of a database in SQLite. Throws Error also where a value is a pickle (unsupported).
void for_ase_lmdb_frames(const std::filesystem::path& path, const std::function<bool(AseFrame frame)>& take);

}  // namespace superstep::data
