#include "superstep/study/run_log.h"

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/record/member.h"

namespace superstep::study {

std::vector<nlohmann::json> log_lines(const std::filesystem::path& log) {
  std::vector<nlohmann::json> lines;
  if (!std::filesystem::exists(log)) return lines;
  for (const std::string& line : split(read_text_file(log), '\n'))
    if (nlohmann::json row = parse_json(line); row.is_object()) lines.push_back(std::move(row));
  return lines;
}

std::optional<std::int64_t> diverged_at(const std::filesystem::path& log) {
  for (const nlohmann::json& row : log_lines(log))
    if (record::text_member(row, "event", "") == "diverged") return record::integer_member(row, "step", 0);
  return std::nullopt;
}

}  // namespace superstep::study
