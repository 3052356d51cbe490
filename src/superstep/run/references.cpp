#include "superstep/run/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/system/standard_streams.h"

namespace superstep::run {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Path, size and time of the files at `path`, below it where it is a folder; nothing where there are none.
std::string files_at(const fs::path& path) {
  std::error_code code;
  std::vector<fs::path> files;
  if (fs::is_regular_file(path, code)) files.push_back(path);
  if (fs::is_directory(path, code))
    for (const auto& entry : fs::recursive_directory_iterator(path, code))
      if (entry.is_regular_file(code)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::string text;
  for (const fs::path& file : files)
    text += fmt::format("{} {} {}\n", fs::absolute(file, code).string(), fs::file_size(file, code),
                        fs::last_write_time(file, code).time_since_epoch().count());
  return text;
}

json json_of(const std::optional<Reference>& reference) {
  return reference ? json{{"method", reference->method}, {"value", reference->value}} : json(nullptr);
}

std::optional<Reference> reference_of(const json& object) {
  if (object.is_null()) return std::nullopt;
  return Reference{object.at("method"), object.at("value")};
}

json json_of(const References& references) {
  return {{"floor", json_of(references.floor)},
          {"conventional", json_of(references.conventional)},
          {"limit", json_of(references.limit)},
          {"target", references.target ? json(*references.target) : json(nullptr)}};
}

// Nothing where the entry is not what json_of() writes.
std::optional<References> references_of(const json& object) {
  try {
    References references{.floor = reference_of(object.at("floor")),
                          .conventional = reference_of(object.at("conventional")),
                          .limit = reference_of(object.at("limit")),
                          .target = {}};
    if (!object.at("target").is_null()) references.target = object.at("target").get<double>();
    return references;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string references_key(const Task& task, const workload::Workload& workload,
                           std::span<const std::int64_t> indices) {
  const json described = task.describe();
  std::string what = fmt::format("{}\n{}\n", workload.name, described.dump());
  if (const auto source = described.find("source"); source != described.end() && source->is_string())
    what += files_at(source->get<std::string>());
  what += files_at(fs::read_symlink("/proc/self/exe"));
  for (const std::int64_t index : indices) what += fmt::format("{} ", index);
  return short_key(what);
}

std::optional<References> KnownReferences::find(const Task& task, const workload::Workload& workload,
                                                std::span<const std::int64_t> indices) const {
  if (task.reference_seconds() < worth_remembering) return std::nullopt;
  const std::optional<json> found = entries_.find(references_key(task, workload, indices));
  return found ? references_of(*found) : std::nullopt;
}

References KnownReferences::get(const Task& task, const workload::Workload& workload,
                                std::span<const std::int64_t> indices, ThreadPool& pool) {
  if (auto known = find(task, workload, indices)) return std::move(*known);
  References found = task.references(indices, pool);
  if (task.reference_seconds() < worth_remembering) return found;
  try {
    entries_.add(references_key(task, workload, indices), json_of(found));
  } catch (const Error& error) {
    tell(fmt::format("superstep: note: what others reach is not remembered: {}\n", error.what()));
  }
  return found;
}

}  // namespace superstep::run
