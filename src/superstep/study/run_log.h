// What the log of a training run says (metrics.jsonl of its folder).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace superstep::study {

// Its lines; none where there is no log. Lines that are no objects are left out.
std::vector<nlohmann::json> log_lines(const std::filesystem::path& log);

// The step at which the loss was no number; nothing where it always was one.
std::optional<std::int64_t> diverged_at(const std::filesystem::path& log);

}  // namespace superstep::study
