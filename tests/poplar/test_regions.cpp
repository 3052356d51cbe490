// Regions of memory, simple orders, what a tensor was broadcast from, several clones in one.
#include <random>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Intervals = std::vector<Interval>;
using Lists = std::vector<Intervals>;

namespace {

// The elements of a tensor, row-major, by variable and place in it.
std::vector<std::pair<unsigned, std::size_t>> elements_of(const Tensor& tensor) {
  std::vector<std::pair<unsigned, std::size_t>> elements;
  for (const VariableInterval& region : tensor.getVarRegions())
    for (std::size_t i = region.interval.begin(); i < region.interval.end(); ++i)
      elements.emplace_back(region.var.getId(), i);
  return elements;
}

// A view with slices, shuffles, reversals and joins, drawn.
Tensor drawn_view(Machine& machine, std::mt19937& random) {
  Tensor t = machine.variable(INT, {4, 6}, "a");
  for (int step = 0; step < 4; ++step) switch (random() % 5) {
      case 0: t = t.transpose(); break;
      case 1: t = t.reverse(random() % 2); break;
      case 2: t = concat(t, t, random() % 2); break;
      case 3: t = concat(t, machine.variable(INT, t.shape(), "b"), random() % 2); break;
      default: t = t.slice(0, t.dim(0) / 2 + 1, 0); break;
    }
  return t;
}

}  // namespace

TEST(PoplarRegions, PiecesThatFollowInMemoryAreOneList) {
  Machine machine;
  Tensor t = machine.variable(INT, {8}), other = machine.variable(INT, {4});
  Tensor view = concat({t.slice(4, 8), other.slice(1, 3), t.slice(0, 4)});
  EXPECT_EQ(machine.graph.getSortedContiguousRegions(view, {{0, 10}}), (Lists{{{6, 10}, {0, 4}}, {{4, 6}}}));
  EXPECT_EQ(machine.graph.getSortedContiguousRegions(view, {{1, 2}, {8, 10}}), (Lists{{{8, 10}}, {{1, 2}}}));
  EXPECT_TRUE(machine.graph.getSortedContiguousRegions(view, {}).empty());
  expect_throw<index_error>([&] { machine.graph.getSortedContiguousRegions(view, {{0, 11}}); }, "[0, 11)");
}

TEST(PoplarRegions, AliasesAreNamedByTheFirstPlaceOrLeftOut) {
  Machine machine;
  Tensor t = machine.variable(INT, {6});
  Tensor view = concat(t.slice(1, 5), t.slice(0, 3));  // elements 1 2 3 4, then 0 1 2
  std::vector<std::size_t> firsts;
  const Lists all = machine.graph.getSortedContiguousRegions(view, {{0, 7}}, false, &firsts);
  std::vector<std::size_t> first_of(7, 99);
  std::size_t i = 0;
  for (const Intervals& list : all)
    for (const Interval& interval : list) {
      for (std::size_t k = 0; k < interval.size(); ++k) first_of[interval.begin() + k] = firsts[i] + k;
      ++i;
    }
  EXPECT_EQ(firsts.size(), i);
  EXPECT_EQ(first_of, (std::vector<std::size_t>{0, 1, 2, 3, 4, 0, 1}));
  EXPECT_EQ(machine.graph.getSortedContiguousRegions(view, {{0, 7}}, true), (Lists{{{4, 5}, {0, 4}}}));
}

TEST(PoplarRegions, EveryPlaceIsInOneRegionAndListsGoOnInMemory) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Machine machine;
    const Tensor view = drawn_view(machine, random).flatten();
    const auto elements = elements_of(view);
    std::vector<int> met(elements.size());
    for (const Intervals& list : machine.graph.getSortedContiguousRegions(view, {{0, elements.size()}})) {
      std::vector<std::size_t> places;
      for (const Interval& interval : list)
        for (std::size_t i = interval.begin(); i < interval.end(); ++i) places.push_back(i);
      for (std::size_t i = 0; i < places.size(); ++i) {
        ++met[places[i]];
        if (i > 0) {
          EXPECT_EQ(elements[places[i]].second, elements[places[i - 1]].second + 1);
        }
      }
    }
    EXPECT_EQ(met, std::vector<int>(elements.size(), 1));
  }
}

TEST(PoplarRegions, AReorderedTensorHasFewRegionsAndOthersGoWithIt) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    Machine machine;
    const Tensor view = drawn_view(machine, random).flatten();
    Tensor t = view, number = machine.variable(INT, {view.numElements()}, "number");
    const unsigned numbers = number.getVarRegions()[0].var.getId();
    machine.graph.reorderToSimplify(&t, {&number});
    const auto before = elements_of(view), after = elements_of(t), order = elements_of(number);
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(order[i].first, numbers);
      EXPECT_EQ(after[i], before[order[i].second]);
    }
    EXPECT_LE(t.getContiguousRegions().size(), view.getContiguousRegions().size());
    const TensorRearranger rearranger = machine.graph.getSimplifyingRearranger(view);
    EXPECT_EQ(rearranger.undoRearrangement(rearranger.rearrange(view)), view);
  }
}

TEST(PoplarRegions, ATransposedTensorIsOneRegionWithoutWalkingItsElements) {
  Machine machine;
  Tensor t = machine.variable(INT, {3000, 2000}).transpose().flatten();
  machine.graph.reorderToSimplify(&t, {}, false);
  EXPECT_TRUE(t.isContiguous());
  Tensor short_one = machine.variable(INT, {3});
  expect_throw<poplar_error>([&] { machine.graph.reorderToSimplify(&t, {&short_one}); }, "has not the shape");
}

TEST(PoplarRegions, ABroadcastIsTakenBack) {
  Machine machine;
  Tensor t = machine.variable(INT, {1, 6, 2});
  EXPECT_EQ(machine.graph.findUnbroadcastTensor(t.broadcast(4, 0)), t);
  EXPECT_EQ(machine.graph.findUnbroadcastTensor(t.broadcast(4, 0).broadcast(3, 1)), t);
  EXPECT_EQ(machine.graph.findUnbroadcastTensor(t), t);
  Tensor repeated = t.upsample(2, 1, UpsampleMethod::REPEAT);  // 0 0 1 1: no broadcast
  EXPECT_EQ(machine.graph.findUnbroadcastTensor(repeated), repeated);
  Tensor mixed = concat(t, t.reverse(1), 0);
  EXPECT_EQ(machine.graph.findUnbroadcastTensor(mixed), mixed);
}

TEST(PoplarRegions, ClonesByRegionLieTogetherOnTheirTile) {
  Machine machine;
  Tensor t = machine.graph.addVariable(INT, {4, 3}, "t");
  for (unsigned i = 0; i < 4; ++i) machine.graph.setTileMapping(t[i], i % 2);
  using Duplication = TensorCloneDuplicationMethod;
  Tensor outer = machine.graph.cloneN(t, 3, "outer", TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
  EXPECT_EQ(outer.shape(), (std::vector<std::size_t>{3, 4, 3}));
  EXPECT_FALSE(outer.intersectsWith(t));
  EXPECT_FALSE(outer.containsAliases());
  Tensor by_region =
      machine.graph.cloneN(FLOAT, t, 5, "r", TensorCloneMethod::GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES,
                           Duplication::DUPLICATE_BY_TILE_CONTIGUOUS_REGION);
  EXPECT_EQ(by_region.shape(), (std::vector<std::size_t>{5, 4, 3}));
  EXPECT_EQ(by_region.elementType(), FLOAT);
  for (unsigned i = 0; i < 5; ++i)
    EXPECT_EQ(machine.graph.getTileMapping(by_region[i]), machine.graph.getTileMapping(t));
  // Rows 0 and 2 are together on tile 0: of each clone they are one run.
  Tensor rows = concat(by_region[1][0], by_region[1][2]);
  EXPECT_TRUE(rows.isContiguous());
  Tensor twice = concat(t, t[1].expand({0}));  // an alias stays one
  Tensor copies = machine.graph.cloneN(twice, 2, "a", TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES,
                                       Duplication::DUPLICATE_BY_TILE_CONTIGUOUS_REGION);
  EXPECT_EQ(copies[1][1], copies[1][4]);
  EXPECT_FALSE(copies[1][1] == copies[0][1]);
  expect_throw<poplar_error>(
      [&] {
        machine.graph.cloneN(t, 2, "n", TensorCloneMethod::CREATE_NEW_ORDER,
                             Duplication::DUPLICATE_BY_TILE_CONTIGUOUS_REGION);
      },
      "CREATE_NEW_ORDER");
}

TEST(PoplarRegions, AMappingByManyIntervalsIsThatOfItsParts) {
  std::mt19937 random(9);
  for (int round = 0; round < 100; ++round) {
    Machine machine;
    const Tensor view = drawn_view(machine, random);
    if (view.containsAliases()) continue;
    Graph::TileToTensorMapping mapping(4);
    for (std::size_t begin = 0; begin < view.numElements();) {
      const std::size_t end = std::min<std::size_t>(view.numElements(), begin + 1 + random() % 5);
      mapping[random() % 4].emplace_back(begin, end);
      begin = end;
    }
    machine.graph.setTileMapping(view, mapping);
    std::vector<unsigned> tile_of(view.numElements());
    const auto mapped = machine.graph.getTileMapping(view);
    for (unsigned tile = 0; tile < 4; ++tile) {
      for (const Interval& interval : mapped[tile])
        for (std::size_t i = interval.begin(); i < interval.end(); ++i) tile_of[i] = tile;
    }
    for (unsigned tile = 0; tile < 4; ++tile)
      for (const Interval& interval : mapping[tile])
        for (std::size_t i = interval.begin(); i < interval.end(); ++i) EXPECT_EQ(tile_of[i], tile);
  }
}
