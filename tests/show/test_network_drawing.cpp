// The drawing of a model: every node in a box, or in one block of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>

#include "superstep/graph/text.h"
#include "superstep/show/network_drawing.h"
#include "tests/contains.h"

namespace superstep::show {
namespace {

using page::NetworkNode;

// x, then so many blocks of y = Relu(x) + x.
graph::Graph residual(int blocks) {
  graph::Graph graph("residual");
  const graph::ValueType type{ElementType::f32, {1, 4}};
  graph::ValueId value = graph.add_input("x", type);
  for (int i = 0; i < blocks; ++i) {
    const graph::ValueId in = value;
    const auto add = [&](const char* op, std::vector<graph::ValueId> inputs) {
      const graph::NodeId node =
          graph.add_node(op, std::move(inputs), std::span(&type, 1), {}, fmt::format("block{}.{}", i, op));
      return graph.node(node).outputs[0];
    };
    value = add("Relu", {in});
    value = add("Add", {value, in});
  }
  graph.add_output("y", value);
  return graph;
}

// Of "12 nodes: Relu x6, ...".
int nodes_in(const NetworkNode& box) {
  int count = 1;
  if (contains(box.title, " nodes: "))
    std::from_chars(box.title.data(), box.title.data() + box.title.size(), count);
  return count;
}

TEST(NetworkDrawing, HasABoxForEachNodeOfASmallModel) {
  const std::vector<NetworkNode> boxes = network_of(residual(2));
  ASSERT_EQ(boxes.size(), 6U);
  EXPECT_EQ(boxes[0].title, "x");
  EXPECT_EQ(boxes[1].title, "Relu");
  EXPECT_EQ(boxes[2].reads, (std::vector<std::size_t>{1, 0}));
  EXPECT_TRUE(contains(boxes[1].hint, "block0.Relu"));
  EXPECT_EQ(boxes[5].title, "y");
  EXPECT_EQ(boxes[5].reads, std::vector<std::size_t>{4});
}

TEST(NetworkDrawing, CutsALargeModelBetweenItsBlocks) {
  for (const int blocks : {41, 60, 300, 1000}) {
    const std::vector<NetworkNode> boxes = network_of(residual(blocks));
    EXPECT_LE(boxes.size(), 83U) << blocks;
    EXPECT_GE(boxes.size(), 20U) << blocks;
    int nodes = 0;
    for (std::size_t i = 1; i + 1 < boxes.size(); ++i) {
      nodes += nodes_in(boxes[i]);
      EXPECT_EQ(boxes[i].reads, std::vector<std::size_t>{i - 1}) << "nothing passes by";
      EXPECT_EQ(nodes_in(boxes[i]) % 2, 0) << "a block is not cut through";
    }
    EXPECT_EQ(nodes, 2 * blocks);
    page::laid_out(boxes);
  }
}

}  // namespace
}  // namespace superstep::show
