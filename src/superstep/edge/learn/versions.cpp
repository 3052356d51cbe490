#include "superstep/edge/learn/versions.h"

#include "superstep/base/file.h"

namespace superstep::edge {

namespace fs = std::filesystem;

std::optional<std::string> VersionFolder::present() const {
  if (!fs::exists(folder_ / "current/manifest.json")) return std::nullopt;
  return fs::canonical(folder_ / "current/run").string();
}

std::string VersionFolder::keep(const std::string& version, const fs::path& run,
                                const nlohmann::json& manifest) const {
  const fs::path folder = folder_ / "versions" / version;
  if (!fs::exists(folder / "manifest.json")) {
    fs::remove_all(folder);  // begun by a server that was killed
    make_folder(folder);
    fs::rename(run, folder / "run");
    write_file_atomically(folder / "manifest.json", manifest.dump(1) + "\n");
  }
  return (folder / "run").string();
}

void VersionFolder::choose(const std::string& version) const {
  const fs::path link = folder_ / "current", aside = folder_ / "current.new";
  if (!fs::exists(folder_ / "versions" / version / "manifest.json")) {
    fs::remove(link);
    return;
  }
  fs::remove(aside);
  fs::create_directory_symlink(fs::path("versions") / version, aside);
  fs::rename(aside, link);
}

}  // namespace superstep::edge
