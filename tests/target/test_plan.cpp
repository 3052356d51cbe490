// Strides of views and the packing of the arena.
#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/target/cpu/plan/arena.h"
#include "superstep/target/cpu/plan/strides.h"

namespace superstep::target::cpu {
namespace {

TEST(Strides, ReshapeSplitsAndJoins) {
  const Shape image{2, 8, 3, 3};  // [N, C, H, W] stored [H][W][N][C]
  const Strides strides = dense_strides(image, {2, 3, 0, 1});
  EXPECT_EQ(strides, (Strides{8, 1, 48, 16}));
  EXPECT_EQ(reshape_strides(image, strides, {2, 8, 9}), (Strides{8, 1, 16}));
  EXPECT_EQ(reshape_strides({2, 8, 9}, {8, 1, 16}, image), strides);
  EXPECT_EQ(reshape_strides(image, strides, {2, 72}), std::nullopt);  // C and H do not join
  EXPECT_EQ(reshape_strides({4, 6}, {6, 1}, {2, 2, 3, 2}), (Strides{12, 6, 2, 1}));
}

TEST(Strides, DenseMeansEveryElementOnce) {
  EXPECT_TRUE(is_dense({2, 3}, {3, 1}));
  EXPECT_TRUE(is_dense({2, 3}, {1, 2}));
  EXPECT_FALSE(is_dense({2, 3}, {4, 1}));
  EXPECT_FALSE(is_dense({2, 3}, {0, 1}));
}

// Random lifetimes: no two blocks that live together overlap, and little is lost to the packing.
TEST(Arena, PacksWithoutOverlap) {
  RandomStream random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random.below(40));
      blocks.push_back({.bytes = 1 + random.below(5000),
                        .first = first,
                        .last = first + static_cast<int>(random.below(12))});
    }
    const std::size_t total = pack(blocks);
    for (std::size_t a = 0; a < blocks.size(); ++a) {
      EXPECT_LE(blocks[a].offset + blocks[a].bytes, total);
      EXPECT_EQ(blocks[a].offset % arena_alignment, 0u);
      for (std::size_t b = 0; b < a; ++b) {
        const bool together = blocks[a].first <= blocks[b].last && blocks[b].first <= blocks[a].last;
        const bool apart = blocks[a].offset + blocks[a].bytes <= blocks[b].offset ||
                           blocks[b].offset + blocks[b].bytes <= blocks[a].offset;
        EXPECT_TRUE(!together || apart);
      }
    }
    EXPECT_LE(static_cast<double>(total), 1.4 * static_cast<double>(lower_bound(blocks)));
  }
}

}  // namespace
}  // namespace superstep::target::cpu
