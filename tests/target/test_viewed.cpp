// Where views of values lie: boxes of other extents, or of axes in another order, that are the same elements.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "superstep/target/ipu/place/viewed.h"

namespace superstep::target::ipu {
namespace {

using Extents = std::vector<std::int64_t>;

// A grid of so many boxes along every axis, numbered as tiles.
Spread grid(const Shape& shape, const Extents& splits) {
  Spread spread;
  std::int64_t boxes = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    spread.bounds.push_back(even_bounds(shape[axis], splits[static_cast<std::size_t>(axis)]));
    boxes *= static_cast<std::int64_t>(spread.bounds.back().size()) - 1;
  }
  spread.tiles.resize(static_cast<std::size_t>(boxes));
  std::iota(spread.tiles.begin(), spread.tiles.end(), 0);
  return spread;
}

// The tile of every element, in row-major order.
std::vector<std::uint32_t> tiles_of(const Spread& spread, const Shape& shape) {
  std::vector<std::uint32_t> tiles;
  for (std::int64_t element = 0; element < shape.element_count(); ++element) {
    std::int64_t rest = element, box = 0, scale = 1;
    for (int axis = shape.rank(); axis-- > 0;) {
      const Bounds& along = spread.bounds[static_cast<std::size_t>(axis)];
      const std::int64_t place = rest % shape[axis];
      rest /= shape[axis];
      std::int64_t k = 0;
      while (along[static_cast<std::size_t>(k) + 1] <= place) ++k;
      box += k * scale;
      scale *= static_cast<std::int64_t>(along.size()) - 1;
    }
    tiles.push_back(spread.tiles[static_cast<std::size_t>(box)]);
  }
  return tiles;
}

// Seen with other extents every element lies where it lay.
void expect_reshaped(const Shape& from, const Extents& splits, const Shape& to) {
  const Spread spread = grid(from, splits);
  const std::optional<Spread> seen = reshaped(spread, from, to);
  ASSERT_TRUE(seen) << to_string(from) << " as " << to_string(to);
  EXPECT_EQ(tiles_of(*seen, to), tiles_of(spread, from)) << to_string(from) << " as " << to_string(to);
}

TEST(Viewed, OtherExtents) {
  expect_reshaped({8, 32, 5}, {3, 1, 1}, {256, 5});
  expect_reshaped({8, 32, 5}, {8, 4, 1}, {1, 256, 5});
  expect_reshaped({8, 32, 5}, {1, 1, 5}, {2, 128, 1, 5});
  expect_reshaped({256, 6}, {4, 3}, {4, 64, 6});
  expect_reshaped({256, 6}, {16, 1}, {4, 64, 2, 3});
  expect_reshaped({12, 10}, {12, 5}, {3, 4, 10});
  expect_reshaped({1, 7, 1}, {1, 7, 1}, {7});
  expect_reshaped({40}, {4}, {4, 10, 1});
}

TEST(Viewed, NoneWhereBoxesAreNoBoxesOfTheNewExtents) {
  EXPECT_FALSE(reshaped(grid({8, 32}, {2, 4}), {8, 32}, {256}));    // pieces of rows, rows apart
  EXPECT_FALSE(reshaped(grid({10, 6}, {5, 1}), {10, 6}, {4, 15}));  // 12 elements a box
  EXPECT_FALSE(reshaped(grid({7}, {3}), {7}, {7, 0}));
}

TEST(Viewed, OtherOrder) {
  const Shape from{4, 6, 10}, to{10, 4, 6};
  const Spread spread = grid(from, {2, 3, 5});
  const std::optional<Spread> seen = permuted(spread, from, {2, 0, 1});
  ASSERT_TRUE(seen);
  const std::vector<std::uint32_t> before = tiles_of(spread, from), after = tiles_of(*seen, to);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 6; ++j)
      for (std::int64_t k = 0; k < 10; ++k)
        ASSERT_EQ(after[static_cast<std::size_t>((k * 4 + i) * 6 + j)],
                  before[static_cast<std::size_t>((i * 6 + j) * 10 + k)]);
}

TEST(Viewed, ARowOfAllElementsIsOne) {
  Spread row{Flattening::all, {{0, 30, 60}}, {4, 9}};
  const std::optional<Spread> seen = reshaped(row, {6, 10}, {60, 1});
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->flattening, Flattening::all);
  EXPECT_EQ(seen->tiles, row.tiles);
}

}  // namespace
}  // namespace superstep::target::ipu
