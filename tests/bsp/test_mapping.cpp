// Which tile an element is on, after many settings of any order.
#include <gtest/gtest.h>

#include <random>

#include "superstep/bsp/graph/mapping.h"

using namespace superstep::bsp;

namespace {

constexpr std::uint32_t none = 0xffffffffu;

// One tile an element; none where none was set.
std::vector<std::uint32_t> tiles_of(const IntervalMap& map, std::int64_t count) {
  std::vector<std::uint32_t> tiles(static_cast<std::size_t>(count), none);
  std::int64_t reached = -1;
  std::uint32_t last = none;
  for (const MappedInterval& part : map.intervals()) {
    EXPECT_LT(part.begin, part.end);
    EXPECT_TRUE(part.begin > reached || (part.begin == reached && part.tile != last)) << part.begin;
    reached = part.end;
    last = part.tile;
    std::fill(tiles.begin() + part.begin, tiles.begin() + part.end, part.tile);
  }
  return tiles;
}

}  // namespace

TEST(Mapping, LaterSettingsStandAboveEarlierOnes) {
  constexpr std::int64_t count = 40;
  std::mt19937 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    IntervalMap map;
    std::vector<std::uint32_t> expected(count, none);
    std::int64_t next = 0;  // half of the turns go on where the last ended, as programs do
    for (int i = 0; i < 30; ++i) {
      const bool in_order = turn % 2 == 0 && next < count;
      const std::int64_t begin = in_order ? next : static_cast<std::int64_t>(random() % count);
      const std::int64_t end = std::min<std::int64_t>(count, begin + static_cast<std::int64_t>(random() % 5));
      const std::uint32_t tile = random() % 3;
      map.set(begin, end, tile);
      std::fill(expected.begin() + begin, expected.begin() + end, tile);
      ASSERT_EQ(tiles_of(map, count), expected) << turn << " " << i;
      const auto gap = std::find(expected.begin(), expected.end(), none);
      EXPECT_EQ(map.first_unmapped(count), gap == expected.end() ? -1 : gap - expected.begin());
      next = end + (random() % 4 == 0);
    }
  }
}
