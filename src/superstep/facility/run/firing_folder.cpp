#include "superstep/facility/run/firing_folder.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"

namespace superstep::facility {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path firing_folder(const fs::path& run, const std::string& task, std::size_t number) {
  return run / "work" / task / fmt::format("{:05}", number);
}

void write_firing(const fs::path& folder, const FiringRecord& record) {
  Json taken = Json::array();
  for (const auto& [how, item] : record.taken)
    taken.push_back({how.door, how.used, item.of_source, item.producer, item.number});
  const Json json{{"taken", std::move(taken)},
                  {"cut", record.cut},
                  {"begun", record.begun},
                  {"job", record.job},
                  {"emulated", record.emulated}};
  write_file_atomically(folder / "firing.json", json.dump() + "\n");
}

void write_done(const fs::path& folder, double ended, const Course& course) {
  const Json json{
      {"ended", ended},
      {"course",
       {course.born, course.gathered, course.queued, course.waited, course.computed, course.moved}}};
  write_file_atomically(folder / "done.json", json.dump() + "\n");
}

std::optional<FiringRecord> read_firing(const fs::path& folder) {
  const fs::path file = folder / "firing.json", done = folder / "done.json";
  if (!fs::exists(file)) return std::nullopt;
  try {
    const Json json = parse_json_or_throw(read_text_file(file));
    FiringRecord record{.cut = json.at("cut").get<double>(),
                        .begun = json.at("begun").get<double>(),
                        .job = json.at("job").get<std::string>(),
                        .emulated = json.at("emulated").get<bool>()};
    for (const Json& one : json.at("taken"))
      record.taken.emplace_back(
          Taken{.door = one.at(0).get<std::size_t>(), .used = one.at(1).get<bool>()},
          ItemName{one.at(2).get<bool>(), one.at(3).get<std::size_t>(), one.at(4).get<std::size_t>()});
    if (!fs::exists(done)) return record;
    const Json end = parse_json_or_throw(read_text_file(done));
    record.ended = end.at("ended").get<double>();
    const auto course = end.at("course").get<std::array<double, 6>>();
    record.course = {course[0], course[1], course[2], course[3], course[4], course[5]};
    return record;
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::bad_file, error.what(), folder.string(),
                "this firing's record is damaged: without its folder the run does it again");
  }
}

std::optional<int> status_of(const fs::path& folder) {
  const fs::path file = folder / "status";
  if (!fs::exists(file)) return std::nullopt;
  const std::string text = read_text_file(file);
  int status = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  if (error != std::errc()) throw Error(ErrorCode::bad_file, "is no exit status", file.string());
  return status;
}

}  // namespace superstep::facility
