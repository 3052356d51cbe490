// The versions that learning has made, in a folder:
//   versions/VERSION/run/            the weights, as a run's folder; VERSION is the hash of their content
//   versions/VERSION/manifest.json   where they come from: written last, so that what has one is whole
//   current                          a link to the version that is served, replaced at once
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace superstep::edge {

class VersionFolder {
 public:
  explicit VersionFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The run of the version that is current; nothing where none of this folder is.
  std::optional<std::string> present() const;

  // The run of a version: `run` moved to its place, unless it is there whole. Throws Error (io), and what
  // moving throws.
  std::string keep(const std::string& version, const std::filesystem::path& run,
                   const nlohmann::json& manifest) const;

  // Makes a version current; one that is not of this folder (what learning began with): none is.
  void choose(const std::string& version) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace superstep::edge
