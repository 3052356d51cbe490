// Drawings of networks: layers, boxes that do not meet, connections that end where they should.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/page/network.h"
#include "tests/expect_error.h"

namespace superstep::page {
namespace {

std::vector<NetworkNode> network(const std::vector<std::vector<std::size_t>>& reads) {
  std::vector<NetworkNode> nodes;
  for (const auto& each : reads)
    nodes.push_back({.title = fmt::format("n{}", nodes.size()), .text = "Add", .reads = each});
  return nodes;
}

// Below what they read, apart from each other, inside the drawing, and joined from box to box.
void expect_drawable(const std::vector<NetworkNode>& nodes) {
  const NetworkLayout layout = laid_out(nodes);
  ASSERT_EQ(layout.places.size(), nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NetworkLayout::Place& here = layout.places[i];
    EXPECT_GE(here.x - network_box_width / 2, 0);
    EXPECT_LE(here.x + network_box_width / 2, layout.width);
    EXPECT_LE(here.y + network_box_height / 2, layout.height);
    for (std::size_t other = 0; other < i; ++other)
      EXPECT_TRUE(layout.places[other].layer != here.layer ||
                  std::abs(layout.places[other].x - here.x) >= network_box_width)
          << other << " and " << i;
    ASSERT_EQ(layout.connections[i].size(), nodes[i].reads.size());
    for (std::size_t k = 0; k < nodes[i].reads.size(); ++k) {
      const auto& way = layout.connections[i][k];
      EXPECT_EQ(way.front().x, layout.places[nodes[i].reads[k]].x);
      EXPECT_EQ(way.back().x, here.x);
      for (std::size_t at = 1; at < way.size(); ++at) EXPECT_EQ(way[at].layer, way[at - 1].layer + 1);
    }
  }
}

TEST(Network, AChainIsALine) {
  const auto nodes = network({{}, {0}, {1}, {2}});
  expect_drawable(nodes);
  const NetworkLayout layout = laid_out(nodes);
  for (const NetworkLayout::Place& place : layout.places) EXPECT_NEAR(place.x, layout.places[0].x, 1e-9);
}

TEST(Network, ABranchIsSymmetric) {
  const auto nodes = network({{}, {0}, {0}, {1, 2}});
  expect_drawable(nodes);
  const NetworkLayout layout = laid_out(nodes);
  EXPECT_NEAR(layout.places[0].x, layout.places[3].x, 1e-9);
  EXPECT_NEAR(layout.places[1].x + layout.places[2].x, 2 * layout.places[0].x, 1e-9);
}

// Two chains side by side, their nodes listed in turn: order by barycenters keeps each straight.
TEST(Network, ChainsDoNotCross) {
  const auto nodes = network({{}, {}, {1}, {0}, {3}, {2}, {5}, {4}});
  const NetworkLayout layout = laid_out(nodes);
  EXPECT_LT((layout.places[0].x - layout.places[1].x) * (layout.places[2].x - layout.places[3].x), 0);
  EXPECT_LT((layout.places[3].x - layout.places[2].x) * (layout.places[6].x - layout.places[7].x), 0);
}

TEST(Network, ASourceStandsAboveItsReader) {
  const NetworkLayout layout = laid_out(network({{}, {0}, {1}, {}, {2, 3}}));
  EXPECT_EQ(layout.places[3].layer, 2);
}

TEST(Network, AnyNetworkIsDrawable) {
  RandomStream random(7);
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<std::vector<std::size_t>> reads;
    for (std::size_t i = 0; i < 40; ++i) {
      auto& each = reads.emplace_back();
      for (int k = 0; i > 0 && k < 3; ++k)
        if (random.uniform(0, 1) < 0.5)
          each.push_back(static_cast<std::size_t>(random.uniform(0, 1) * double(i)));
    }
    expect_drawable(network(reads));
  }
  expect_drawable({});
}

TEST(Network, DrawsBoxesConnectionsAndNothingOfAName) {
  auto nodes = network({{}, {0}, {0, 1}});
  nodes[1].title = "<script>a very long name of a layer";
  nodes[2].fill = "rgb(255,0,0)";
  nodes[2].hint = "\"hint\"";
  const std::string svg = network_figure(nodes);
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = svg.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("<rect"), 3U);
  EXPECT_EQ(count("M"), 3U);
  EXPECT_EQ(count("<script"), 0U);
  EXPECT_EQ(count("<title>&quot;hint&quot;</title>"), 1U);
  EXPECT_EQ(count("fill:rgb(255,0,0)"), 1U);
  EXPECT_EQ(count("..."), 1U);
}

TEST(Network, ReadingWhatComesLaterIsRefused) {
  expect_error(ErrorCode::invalid_argument, {"reads one after it"}, [] { laid_out(network({{1}, {}})); });
  expect_error(ErrorCode::invalid_argument, {"reads one after it"}, [] { laid_out(network({{0}})); });
}

}  // namespace
}  // namespace superstep::page
