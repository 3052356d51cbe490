#include "superstep/edge/stream/series.h"

#include <algorithm>

#include "superstep/edge/stream/frame.h"

namespace superstep::edge {

bool is_series_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= most_name_bytes && !name.starts_with('.') &&
         std::ranges::all_of(name, good);
}

bool Series::add(std::uint64_t number) {
  if (number >= there_.size()) there_.resize(number + 1);
  if (there_[number]) return false;
  there_[number] = true;
  ++seen_;
  return true;
}

std::uint64_t Series::expected() const {
  return announced_ > 0 ? std::min(announced_, most_frames) : static_cast<std::uint64_t>(there_.size());
}

std::uint64_t Series::seen_of_expected() const {
  if (there_.size() <= expected()) return seen_;
  return static_cast<std::uint64_t>(
      std::count(there_.begin(), there_.begin() + static_cast<std::ptrdiff_t>(expected()), true));
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Series::missing_ranges(std::size_t most) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::uint64_t number = 0; number < expected(); ++number) {
    if (has(number)) continue;
    if (!ranges.empty() && ranges.back().second + 1 == number) {
      ranges.back().second = number;
      continue;
    }
    if (ranges.size() == most) break;
    ranges.emplace_back(number, number);
  }
  return ranges;
}

}  // namespace superstep::edge
