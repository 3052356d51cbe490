#include "superstep/file/columns/list_rows.h"

#include <algorithm>

namespace superstep::data::columns {

std::vector<std::uint8_t> pattern_of(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  std::vector<std::uint8_t> pattern(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    // The outermost list in which it begins no new element of the one before.
    std::int64_t inner = count;
    std::uint8_t level = 0;
    while (i % inner != 0) inner /= extents[level++];
    pattern[static_cast<std::size_t>(i)] = level;
  }
  return pattern;
}

std::optional<std::vector<std::int64_t>> extents_of_row(std::span<const std::uint8_t> repeated, int lists) {
  std::vector<std::int64_t> extents;
  std::int64_t before = 1;
  for (int level = 1; level <= lists; ++level) {
    const std::int64_t begun =
        std::ranges::count_if(repeated, [&](std::uint8_t each) { return each <= level; });
    if (begun == 0 || begun % before != 0) return std::nullopt;
    extents.push_back(begun / before);
    before = begun;
  }
  if (!std::ranges::equal(pattern_of(extents), repeated)) return std::nullopt;
  return extents;
}

}  // namespace superstep::data::columns
