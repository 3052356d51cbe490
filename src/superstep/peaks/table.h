// The table of reflections, and of the spots that they are made of, as files.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "superstep/peaks/find_peaks.h"

namespace superstep::peaks {

// By the extension: .h5 and .npz (both tables, as "reflections/NAME" and "spots/NAME"), .csv (a line a
// reflection; names of columns have their units in brackets), .json (both, columns by name). Throws Error
// (invalid_argument) for others.
void require_table_form(const std::filesystem::path& path);

// What is said of the work beside the tables: every setting that they depend on.
nlohmann::json describe(const PeaksSettings& settings, const PeakTable& table);

// `about`: what describe() says, or what of it others may see. A file appears whole or not at all. Throws
// Error (io).
void write_table(const std::filesystem::path& path, const nlohmann::json& about,
                 const PeaksSettings& settings, const PeakTable& table);

}  // namespace superstep::peaks
