#include "superstep/study/run_log.h"

#include <nlohmann/json.hpp>

#include "superstep/record/member.h"
#include "superstep/run/train/run_directory.h"

namespace superstep::study {

std::optional<std::int64_t> diverged_at(const std::filesystem::path& log) {
  for (const nlohmann::json& row : run::log_lines(log))
    if (record::text_member(row, "event", "") == "diverged") return record::integer_member(row, "step", 0);
  return std::nullopt;
}

}  // namespace superstep::study
