// What took long to find and can be found again, kept from one run to the next in one JSON file of the user's
// cache folder.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace superstep::run {

// FNV-1a of 64 bits, in hexadecimal figures: a short name of a long text.
std::string short_key(std::string_view text);

// A file that is broken or of another schema counts as empty and is replaced; so is one of too many entries.
class Remembered {
 public:
  // `path` empty: `name`.json in the user's cache folder; without such a folder nothing is remembered. `name`
  // is of the schema too: superstep-NAME/1.
  explicit Remembered(std::string name, std::filesystem::path path = {});

  std::optional<nlohmann::json> find(const std::string& key) const;
  void add(const std::string& key, const nlohmann::json& value);  // throws Error (io)
  const std::filesystem::path& path() const { return path_; }

 private:
  nlohmann::json entries() const;

  std::string schema_;
  std::filesystem::path path_;
  std::string why_none_;
};

}  // namespace superstep::run
