// Graphs in packs of one size.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/workload/graph_packs.h"

namespace superstep::workload {
namespace {

std::vector<GraphSize> random_sizes(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<GraphSize> sizes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto nodes = 3 + static_cast<std::int64_t>(random.below(40));
    sizes.push_back({nodes, 2 * nodes + 2 * static_cast<std::int64_t>(random.below(4)) - 2});
  }
  return sizes;
}

// How often each graph is in a pack, after a look at what each pack has room for.
std::vector<int> occurrences(const GraphPacks& packs, const std::vector<GraphSize>& sizes,
                             std::optional<std::uint64_t> epoch) {
  std::vector<int> times(sizes.size(), 0);
  for (std::int64_t pack = 0; pack < packs.count(); ++pack) {
    const auto of_pack = packs.graphs(pack);
    const std::vector<std::int32_t> graphs =
        epoch ? packs.shuffled(pack, 7, *epoch) : std::vector<std::int32_t>(of_pack.begin(), of_pack.end());
    std::int64_t nodes = 0, edges = 0;
    for (const std::int32_t graph : graphs) {
      const auto i = static_cast<std::size_t>(graph);
      ++times[i], nodes += sizes[i].nodes, edges += sizes[i].edges;
    }
    EXPECT_LE(nodes, packs.capacity().nodes);
    EXPECT_LE(edges, packs.capacity().edges);
    EXPECT_LE(static_cast<std::int64_t>(graphs.size()), packs.capacity().graphs);
  }
  return times;
}

TEST(GraphPacks, HoldEveryGraphOnceWithinTheirRoom) {
  for (const PackCapacity& capacity : {PackCapacity{128, 300, 20}, {64, 120, 50}, {256, 600, 6}}) {
    const auto sizes = random_sizes(700, 3);
    const GraphPacks packs(sizes, capacity);
    const std::vector<int> once(sizes.size(), 1);
    EXPECT_EQ(occurrences(packs, sizes, std::nullopt), once);
    EXPECT_EQ(occurrences(packs, sizes, 0), once);
    EXPECT_EQ(occurrences(packs, sizes, 5), once);
  }
}

// Nothing but the nodes is scarce: nearly every one is used.
TEST(GraphPacks, LeaveLittleRoom) {
  const auto sizes = random_sizes(3000, 4);
  const GraphPacks packs(sizes, {.nodes = 256, .edges = 10000, .graphs = 100});
  EXPECT_GT(packs.fill().nodes, 0.99);
  EXPECT_EQ(packs.describe("molecules", "atoms", "edges").substr(0, 18), "3,000 molecules in");
}

TEST(GraphPacks, AreShuffledAnewInEveryEpochAndTheSameAgain) {
  const auto sizes = random_sizes(900, 5);
  const GraphPacks packs(sizes, {.nodes = 128, .edges = 400, .graphs = 20});
  int kept = 0, all = 0;
  for (std::int64_t pack = 0; pack < packs.count(); ++pack) {
    const auto first = packs.shuffled(pack, 1, 1), second = packs.shuffled(pack, 1, 2),
               other_seed = packs.shuffled(pack, 2, 1);
    EXPECT_EQ(first, packs.shuffled(pack, 1, 1));
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(sizes[static_cast<std::size_t>(first[i])], sizes[static_cast<std::size_t>(second[i])]);
      kept += first[i] == second[i] || first[i] == other_seed[i], ++all;
    }
  }
  EXPECT_LT(kept, all / 2);
}

TEST(GraphPacks, AGraphThatIsTooLargeIsNamed) {
  const std::vector<GraphSize> sizes{{5, 8}, {9, 20}};
  try {
    GraphPacks(sizes, {.nodes = 8, .edges = 20, .graphs = 4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "graph 1: has 9 nodes and 20 edges, a pack has room for 8 and 20");
  }
  EXPECT_EQ(GraphPacks({}, {.nodes = 8, .edges = 20, .graphs = 4}).count(), 0);
}

}  // namespace
}  // namespace superstep::workload
