#include "superstep/run/remembered.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/user_folders.h"

namespace superstep::run {
namespace {

constexpr std::uintmax_t largest_remembered = 1 << 20;  // bytes; beyond it the file is not ours
constexpr std::size_t most_remembered = 2000;           // entries; beyond it the file is begun anew

}  // namespace

std::string short_key(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

Remembered::Remembered(std::string name, std::filesystem::path path)
    : schema_(fmt::format("superstep-{}/1", name)), path_(std::move(path)) {
  if (!path_.empty()) return;
  try {
    path_ = user_cache_folder() / (name + ".json");
  } catch (const Error& error) {
    why_none_ = error.what();
  }
}

// An empty object when the file is missing, too large or of another kind.
nlohmann::json Remembered::entries() const {
  using nlohmann::json;
  std::error_code code;
  const std::uintmax_t size = std::filesystem::file_size(path_, code);
  if (code || size > largest_remembered) return json::object();
  json file;
  try {
    file = parse_json(read_text_file(path_));
  } catch (const Error&) {  // nothing is remembered where nothing can be read
    return json::object();
  }
  if (!file.is_object() || file.value("schema", json()) != schema_) return json::object();
  json found = file.value("entries", json::object());
  return found.is_object() ? found : json::object();
}

std::optional<nlohmann::json> Remembered::find(const std::string& key) const {
  const nlohmann::json all = entries();
  return all.contains(key) ? std::optional(all[key]) : std::nullopt;
}

void Remembered::add(const std::string& key, const nlohmann::json& value) {
  if (path_.empty()) throw Error(ErrorCode::io, "there is no folder for it: " + why_none_);
  nlohmann::json all = entries();
  if (all.size() >= most_remembered) all = nlohmann::json::object();
  all[key] = value;
  const nlohmann::json file{{"schema", schema_}, {"entries", all}};
  write_file_atomically(path_, file.dump(1) + "\n");
}

}  // namespace superstep::run
