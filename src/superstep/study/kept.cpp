#include "superstep/study/kept.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/record/member.h"
#include "superstep/record/result_json.h"

namespace superstep::study {
namespace {

constexpr const char* schema = "superstep-study-job/1";

std::vector<std::string> texts_of(const nlohmann::json& json) {
  std::vector<std::string> texts;
  if (json.is_array())
    for (const nlohmann::json& each : json)
      if (each.is_string()) texts.push_back(each.get<std::string>());
  return texts;
}

}  // namespace

std::string failure_words(const Error& error) {
  constexpr std::string_view mark = "error: ", blank = " \t\r";
  std::vector<std::string> said;
  for (std::string line : split(error.message(), '\n')) {
    const std::size_t at = line.find(mark);
    if (at != std::string::npos) line.erase(0, at + mark.size());
    line.erase(0, line.find_first_not_of(blank));
    line.erase(line.find_last_not_of(blank) + 1);
    if (at != std::string::npos && !line.empty()) return line;
    if (!line.empty()) said.push_back(std::move(line));
  }
  std::string words = join(said, " ");  // of a process that was killed: how it ended
  if (words.ends_with(':')) words.pop_back();
  return words;
}

std::optional<Kept> KeptJobs::find(const Job& job, double seconds, double share) const {
  const std::filesystem::path file = file_of(job);
  if (!std::filesystem::exists(file)) return std::nullopt;
  const nlohmann::json json = parse_json(read_text_file(file));
  if (!json.is_object() || json.value("schema", nlohmann::json()) != schema || !json.contains("results"))
    throw Error(ErrorCode::bad_file, "is no result of a study's command", file.string(),
                "remove it, and it is measured again");
  Kept kept{.words = texts_of(json.value("words", nlohmann::json())),
            .seconds = record::number_member(json, "seconds", 0),
            .share = record::number_member(json, "share", 0),
            .results = {},
            .failure = {}};
  if (json.contains("failure") && json["failure"].is_string())
    kept.failure = json["failure"].get<std::string>();
  constexpr double enough = 0.5;  // of what it would be given now: twice as long says little more
  const bool same = std::equal(
      job.command.begin(), job.command.end(), kept.words.begin(),
      kept.words.begin() + static_cast<std::ptrdiff_t>(std::min(job.command.size(), kept.words.size())));
  if (!same || kept.seconds < enough * seconds || kept.share < enough * share) return std::nullopt;
  if (kept.failure.empty()) kept.results = record::read_results(json["results"].dump(), file.string());
  return kept;
}

void KeptJobs::keep(const Job& job, const Kept& kept) const {
  nlohmann::json results = nlohmann::json::array();
  for (const record::Result& result : kept.results) results.push_back(record::to_json(result));
  nlohmann::json json{{"schema", schema},    {"words", kept.words}, {"seconds", kept.seconds},
                      {"share", kept.share}, {"results", results},  {"failure", nlohmann::json()}};
  if (!kept.failure.empty()) json["failure"] = kept.failure;
  write_file_atomically(file_of(job),
                        json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace superstep::study
