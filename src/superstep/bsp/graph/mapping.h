// Which tile each element of a variable lives on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/bsp/graph/interval.h"

namespace superstep::bsp {

struct MappedInterval {
  std::int64_t begin = 0, end = 0;
  std::uint32_t tile = 0;
};

// Element ranges to tiles, later settings over earlier ones.
class IntervalMap {
 public:
  void set(std::int64_t begin, std::int64_t end, std::uint32_t tile);
  // Sorted, neighbours on one tile joined.
  std::vector<MappedInterval> intervals() const;
  // What is mapped of [begin, end), cut to it.
  std::vector<MappedInterval> intervals(std::int64_t begin, std::int64_t end) const;
  // The first element of [0, count) without a tile, or -1.
  std::int64_t first_unmapped(std::int64_t count) const;

 private:
  struct Entry {
    std::int64_t end;
    std::uint32_t tile;
  };
  void append(std::int64_t begin, std::int64_t end, std::uint32_t tile);
  std::map<std::int64_t, Entry> entries_;  // by begin; disjoint
};

// A finished mapping with both directions of look-up.
class TileIndex {
 public:
  TileIndex() = default;
  explicit TileIndex(std::vector<MappedInterval> intervals);

  std::span<const MappedInterval> intervals() const { return intervals_; }
  std::uint32_t tile_of(std::int64_t element) const;
  std::size_t position_of(std::int64_t element) const;  // of the interval that holds it
  // How many intervals [begin, end) touches.
  std::size_t pieces(std::int64_t begin, std::int64_t end) const;
  // Elements element, element + stride, ...: `length` of them, cut by their owners; `first` counts them.
  void for_each_owned(std::int64_t element, std::int64_t stride, std::int64_t length,
                      FunctionRef<void(std::int64_t first, std::int64_t count, std::uint32_t tile)> f) const;
  // How many of [begin, end) live on a tile.
  std::int64_t count_on(std::uint32_t tile, std::int64_t begin, std::int64_t end) const;
  // The intervals on one tile, in order: positions into intervals().
  std::span<const std::uint32_t> on_tile(std::uint32_t tile) const;
  // Where an interval begins among the elements of its tile, which lie packed in their order.
  std::int64_t packed_begin(std::size_t position) const { return packed_[position]; }

 private:
  std::vector<MappedInterval> intervals_;
  std::vector<std::uint32_t> by_tile_;  // positions ordered by tile
  std::vector<std::int64_t> packed_;
};

}  // namespace superstep::bsp
