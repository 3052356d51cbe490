// What the log of a training run says (metrics.jsonl of its folder).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace superstep::study {

// The step at which the loss was no number; nothing where it always was one.
std::optional<std::int64_t> diverged_at(const std::filesystem::path& log);

}  // namespace superstep::study
