// A study in a folder: what it goes on from, and what people read.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/design/study.h"

namespace superstep::design {

nlohmann::json to_json(const Study& study, const Problem& problem);

// FOLDER/state.json, atomically: every trial and every decision, numbers with all their digits.
void save_state(const std::filesystem::path& folder, const Study& study, const Problem& problem);
// The study that is in the folder; nothing where there is none. Throws Error (bad_file) for a state that is
// damaged, Error (invalid_argument) for one of another problem or another seed.
std::optional<Study> load_state(const std::filesystem::path& folder, const Problem& problem,
                                std::uint64_t seed);

// A table: number, iteration and role of each trial, settings, deviation, the measured curve.
void write_trials(const std::filesystem::path& path, const Problem& problem, std::span<const Trial> trials);
// Settings to try, in the form that read_trials takes once curves are added.
void write_proposal(const std::filesystem::path& path, const Problem& problem, const Iteration& iteration);

// Trials that others measured: a table with a column for every unknown, in any order, and one for every point
// of the curve, in order; "trial", "sample", "iteration", "role" and "deviation" are passed over, and so are
// rows whose curve is empty, which are yet to be measured. Throws Error (not_found, bad_file).
std::vector<Trial> read_trials(const std::filesystem::path& path, const Problem& problem);

}  // namespace superstep::design
