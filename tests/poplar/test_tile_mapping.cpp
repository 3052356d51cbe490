// poputil: shares of tensors on tiles.
#include <poputil/TileMapping.hpp>

#include "tests/poplar/machine.h"

using namespace poplar;
using Intervals = std::vector<Interval>;

TEST(PoplarTileMapping, SharesAreEqualInGrains) {
  Machine machine;
  const auto mapping = poputil::calcLinearTileMapping(machine.graph, {7, 2}, 1, 4);
  EXPECT_EQ(mapping[0], (Intervals{{0, 4}}));
  EXPECT_EQ(mapping[3], (Intervals{{12, 14}}));
}

TEST(PoplarTileMapping, ATileHasTheLeast) {
  Machine machine;
  const auto mapping = poputil::calcLinearTileMapping(machine.graph, {10}, 6, 1);
  EXPECT_EQ(mapping[0], (Intervals{{0, 10}}));
  Tensor t = machine.graph.addVariable(FLOAT, {96}, "t");  // 384 B: three shares of 128 B
  poputil::mapTensorLinearly(machine.graph, t);
  const auto mapped = machine.graph.getTileMapping(t);
  EXPECT_EQ(mapped[2], (Intervals{{64, 96}}));
  EXPECT_TRUE(mapped[3].empty());
}

TEST(PoplarTileMapping, EveryElementIsMappedOnce) {
  Machine machine(5);
  for (const std::size_t count : {1, 3, 31, 64, 1000}) {
    Tensor t = machine.graph.addVariable(HALF, {count}, "t");
    poputil::mapTensorLinearly(machine.graph, t, 2, 3);
    std::size_t mapped = 0;
    for (const auto& list : machine.graph.getTileMapping(t))
      for (const Interval& interval : list) mapped += interval.size();
    EXPECT_EQ(mapped, count);
  }
}
