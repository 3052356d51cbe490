#include "superstep/bsp/graph/mapping.h"

#include <algorithm>
#include <numeric>

namespace superstep::bsp {

void IntervalMap::set(std::int64_t begin, std::int64_t end, std::uint32_t tile) {
  if (begin >= end) return;
  if (entries_.empty() || std::prev(entries_.end())->second.end <= begin) return append(begin, end, tile);
  auto next = entries_.lower_bound(begin);
  if (next != entries_.begin()) {
    const auto before = std::prev(next);
    const Entry old = before->second;
    if (old.end > begin) {
      before->second.end = begin;
      if (old.end > end) entries_.emplace(end, old);
    }
  }
  next = entries_.lower_bound(begin);
  while (next != entries_.end() && next->first < end) {
    const Entry old = next->second;
    next = entries_.erase(next);
    if (old.end > end) next = entries_.emplace(end, old).first;
  }
  const auto here = entries_.emplace_hint(next, begin, Entry{end, tile});
  if (here == entries_.begin()) return;
  const auto before = std::prev(here);
  if (before->second.end != begin || before->second.tile != tile) return;
  before->second.end = end;
  entries_.erase(here);
}

// Behind all that there is, as a program maps one element after the other.
void IntervalMap::append(std::int64_t begin, std::int64_t end, std::uint32_t tile) {
  if (!entries_.empty()) {
    Entry& last = std::prev(entries_.end())->second;
    if (last.end == begin && last.tile == tile) {
      last.end = end;
      return;
    }
  }
  entries_.emplace_hint(entries_.end(), begin, Entry{end, tile});
}

std::vector<MappedInterval> IntervalMap::intervals() const {
  std::vector<MappedInterval> result;
  for (const auto& [begin, entry] : entries_) {
    if (!result.empty() && result.back().end == begin && result.back().tile == entry.tile)
      result.back().end = entry.end;
    else
      result.push_back({begin, entry.end, entry.tile});
  }
  return result;
}

std::vector<MappedInterval> IntervalMap::intervals(std::int64_t begin, std::int64_t end) const {
  std::vector<MappedInterval> result;
  auto entry = entries_.upper_bound(begin);
  if (entry != entries_.begin()) --entry;
  for (; entry != entries_.end() && entry->first < end; ++entry) {
    const MappedInterval cut{std::max(begin, entry->first), std::min(end, entry->second.end),
                             entry->second.tile};
    if (cut.begin < cut.end) result.push_back(cut);
  }
  return result;
}

std::int64_t IntervalMap::first_unmapped(std::int64_t count) const {
  std::int64_t reached = 0;
  for (const auto& [begin, entry] : entries_) {
    if (begin > reached) break;
    reached = entry.end;
  }
  return reached >= count ? -1 : reached;
}

TileIndex::TileIndex(std::vector<MappedInterval> intervals) : intervals_(std::move(intervals)) {
  by_tile_.resize(intervals_.size());
  std::iota(by_tile_.begin(), by_tile_.end(), 0u);
  std::stable_sort(by_tile_.begin(), by_tile_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return intervals_[a].tile < intervals_[b].tile;
  });
  packed_.resize(intervals_.size());
  std::int64_t next = 0;
  for (std::size_t i = 0; i < by_tile_.size(); ++i) {
    const MappedInterval& interval = intervals_[by_tile_[i]];
    if (i > 0 && interval.tile != intervals_[by_tile_[i - 1]].tile) next = 0;
    packed_[by_tile_[i]] = next;
    next += interval.end - interval.begin;
  }
}

std::size_t TileIndex::position_of(std::int64_t element) const {
  const auto after = std::upper_bound(
      intervals_.begin(), intervals_.end(), element,
      [](std::int64_t value, const MappedInterval& interval) { return value < interval.begin; });
  return static_cast<std::size_t>(after - intervals_.begin()) - 1;
}

std::uint32_t TileIndex::tile_of(std::int64_t element) const { return intervals_[position_of(element)].tile; }

std::size_t TileIndex::pieces(std::int64_t begin, std::int64_t end) const {
  return begin >= end ? 0 : position_of(end - 1) - position_of(begin) + 1;
}

void TileIndex::for_each_owned(std::int64_t element, std::int64_t stride, std::int64_t length,
                               FunctionRef<void(std::int64_t, std::int64_t, std::uint32_t)> f) const {
  for (std::int64_t i = 0; i < length;) {
    const std::int64_t here = element + i * stride;
    const MappedInterval& owner = intervals_[position_of(here)];
    std::int64_t count = length - i;
    if (stride > 0) count = std::min(count, (owner.end - 1 - here) / stride + 1);
    if (stride < 0) count = std::min(count, (here - owner.begin) / -stride + 1);
    f(i, count, owner.tile);
    i += count;
  }
}

std::int64_t TileIndex::count_on(std::uint32_t tile, std::int64_t begin, std::int64_t end) const {
  const auto own = on_tile(tile);
  auto next = std::partition_point(own.begin(), own.end(),
                                   [&](std::uint32_t i) { return intervals_[i].end <= begin; });
  std::int64_t count = 0;
  for (; next != own.end() && intervals_[*next].begin < end; ++next)
    count += std::min(end, intervals_[*next].end) - std::max(begin, intervals_[*next].begin);
  return count;
}

std::span<const std::uint32_t> TileIndex::on_tile(std::uint32_t tile) const {
  const auto first = std::partition_point(by_tile_.begin(), by_tile_.end(),
                                          [&](std::uint32_t i) { return intervals_[i].tile < tile; });
  const auto last = std::partition_point(first, by_tile_.end(),
                                         [&](std::uint32_t i) { return intervals_[i].tile <= tile; });
  return {first, last};
}

}  // namespace superstep::bsp
