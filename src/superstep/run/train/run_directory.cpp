#include "superstep/run/train/run_directory.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

using nlohmann::json;

json parse_json_file(const std::filesystem::path& path) {
  json value = json::parse(read_text_file(path), nullptr, false);
  if (value.is_discarded())
    throw Error(ErrorCode::bad_file, "is not JSON", path.string(), "the file is damaged");
  return value;
}

}  // namespace

void RunDirectory::refuse_existing(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "config.json"))
    throw Error(ErrorCode::invalid_argument, "holds a training run already", folder.string(),
                fmt::format("go on with it by --resume {}, or choose another --out", folder.string()));
}

RunDirectory RunDirectory::create(const std::filesystem::path& folder, const nlohmann::json& config) {
  refuse_existing(folder);
  make_folder(folder / "checkpoints");
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
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
  write_file_atomically(folder_ / "config.json", config.dump(2) + "\n");
  config_ = config;
}

void RunDirectory::add_environment(const nlohmann::json& record) const {
  const std::filesystem::path path = folder_ / "environment.json";
  json records = std::filesystem::exists(path) ? parse_json_file(path) : json::array();
  records.push_back(record);
  write_file_atomically(path, records.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

void RunDirectory::log(const nlohmann::json& line) const { append_line(metrics(), line.dump()); }

std::vector<nlohmann::json> RunDirectory::read_log() const {
  std::vector<json> lines;
  if (!std::filesystem::exists(metrics())) return lines;
  for (const std::string& text : split(read_text_file(metrics()), '\n')) {
    json line = json::parse(text, nullptr, false);
    if (line.is_object()) lines.push_back(std::move(line));  // the last line of a killed run may be half
  }
  return lines;
}

void RunDirectory::rewind_log(std::int64_t step) const {
  std::string kept;
  for (const json& line : read_log())
    if (line.value("step", std::int64_t{0}) <= step) kept += line.dump() + "\n";
  write_file_atomically(metrics(), kept);
}

}  // namespace superstep::run
