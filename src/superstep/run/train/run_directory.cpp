#include "superstep/run/train/run_directory.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

using nlohmann::json;

json parse_json_file(const std::filesystem::path& path) {
  json value = parse_json(read_text_file(path));
  if (value.is_discarded())
    throw Error(ErrorCode::bad_file, "is not JSON", path.string(), "the file is damaged");
  return value;
}

// A file's name need not be text; what is kept as JSON is.
std::string config_text(const json& config, const std::filesystem::path& folder) {
  try {
    return config.dump(2) + "\n";
  } catch (const json::exception&) {
    throw Error(ErrorCode::invalid_argument, "a name in the run's settings is not UTF-8: it cannot be kept",
                (folder / "config.json").string(), "rename the file of the data");
  }
}

// A line that says nothing of its step, or nonsense, belongs to none: it stays.
std::int64_t step_of(const json& line) {
  const auto found = line.find("step");
  return found != line.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

}  // namespace

std::vector<json> log_lines(const std::filesystem::path& log) {
  std::vector<json> lines;
  if (!std::filesystem::exists(log)) return lines;
  for (const std::string& text : split(read_text_file(log), '\n'))
    if (json line = parse_json(text); line.is_object()) lines.push_back(std::move(line));
  return lines;
}

void RunDirectory::refuse_existing(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "config.json"))
    throw Error(ErrorCode::invalid_argument, "holds a training run already", folder.string(),
                fmt::format("go on with it by --resume {}, or choose another --out", folder.string()));
}

RunDirectory RunDirectory::create(const std::filesystem::path& folder, const nlohmann::json& config) {
  refuse_existing(folder);
  const std::string text = config_text(config, folder);
  make_folder(folder / "checkpoints");
  write_file_atomically(folder / "config.json", text);
  return {folder, config};
}

RunDirectory RunDirectory::open(const std::filesystem::path& folder) {
  const std::filesystem::path config = folder / "config.json";
  if (!std::filesystem::exists(config))
    throw Error(ErrorCode::not_found, "is not the folder of a training run: it has no config.json",
                folder.string());
  return {folder, parse_json_file(config)};
}

void RunDirectory::change_config(const nlohmann::json& config) {
  if (config == config_) return;
  write_file_atomically(folder_ / "config.json", config_text(config, folder_));
  config_ = config;
}

void RunDirectory::add_environment(const nlohmann::json& record) const {
  const std::filesystem::path path = folder_ / "environment.json";
  json records = std::filesystem::exists(path) ? parse_json_file(path) : json::array();
  if (!records.is_array())
    throw Error(ErrorCode::bad_file, "is not a list of records", path.string(), "the file is damaged");
  records.push_back(record);
  write_file_atomically(path, records.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

void RunDirectory::log(const nlohmann::json& line) const { append_line(metrics(), line.dump()); }

void RunDirectory::rewind_log(std::int64_t step) const {
  std::string kept;
  for (const json& line : read_log())
    if (step_of(line) <= step) kept += line.dump() + "\n";
  write_file_atomically(metrics(), kept);
}

}  // namespace superstep::run
