#include "superstep/run/trackers/run_names.h"

#include <algorithm>
#include <system_error>

namespace superstep::run {
namespace {

namespace fs = std::filesystem;
using Parts = std::vector<std::string>;  // of a path, the last one first

Parts parts_of(const fs::path& folder) {
  Parts parts;
  // With the point an empty path is the folder that the program is in, as it is to who opens a run there.
  for (const fs::path& each : fs::absolute(folder / ".").lexically_normal().relative_path())
    if (!each.empty()) parts.push_back(each.string());
  std::ranges::reverse(parts);
  return parts;
}

// The whole path where it has no more parts.
std::string tail_of(const Parts& parts, std::size_t count) {
  std::string tail;
  for (std::size_t at = std::min(count, parts.size()); at-- > 0;) {
    if (!tail.empty()) tail += '/';
    tail += parts[at];
  }
  return tail;
}

// Links are followed; what is not there is compared as it is written.
fs::path place_of(const fs::path& folder) {
  std::error_code unknown;
  const fs::path place = fs::weakly_canonical(folder / ".", unknown);
  return unknown ? fs::absolute(folder / ".").lexically_normal() : place;
}

}  // namespace

std::vector<fs::path> each_once(std::span<const fs::path> folders) {
  std::vector<fs::path> kept, places;
  for (const fs::path& folder : folders) {
    fs::path place = place_of(folder);
    if (!place.has_filename()) place = place.parent_path();  // a stroke at the end
    if (std::ranges::find(places, place) != places.end()) continue;
    places.push_back(std::move(place));
    kept.push_back(folder);
  }
  return kept;
}

std::vector<std::string> names_of(std::span<const fs::path> folders) {
  std::vector<Parts> all;
  for (const fs::path& folder : folders) all.push_back(parts_of(folder));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto is_shared = [&](std::size_t count) {
      const std::string tail = tail_of(all[i], count);
      for (std::size_t other = 0; other < all.size(); ++other)
        if (other != i && tail_of(all[other], count) == tail) return true;
      return false;
    };
    // One part more than it has: by then a longer path that ends like this one differs from it.
    std::size_t count = 1;
    while (count <= all[i].size() && is_shared(count)) ++count;
    names.push_back(tail_of(all[i], count));
  }
  return names;
}

}  // namespace superstep::run
