#include <set>

#include "superstep/transform/fuse_elementwise.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::NodeId;

// Groups as text: "Conv+Add+Relu | Exp".
std::string groups_of(const graph::Graph& graph, const FusionGroups& groups) {
  std::string text;
  for (const FusionGroup& group : groups.groups) {
    if (!text.empty()) text += " | ";
    std::string part = group.anchor.valid() ? graph.node(group.anchor).op : "";
    for (NodeId node : group.elementwise) part += (part.empty() ? "" : "+") + graph.node(node).op;
    text += part;
  }
  return text;
}

std::string groups_of(const std::string& body, const FusionOptions& options = {}) {
  const graph::Graph graph = graph_of(body);
  return groups_of(graph, fuse_elementwise(graph, options));
}

const std::string conv = R"(input %x : f32[1,2,4,4]
state %w : f32[3,2,1,1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
%c : f32[1,3,4,4] = Conv(%x, %w) "conv1"
)";

TEST(FuseElementwise, ProductsTakeTheirFollowers) {
  EXPECT_EQ(groups_of(conv + R"(constant %b : f32[3,1,1] = [1.0, 2.0, 3.0]
%s : f32[1,3,4,4] = Add(%c, %b)
%y : f32[1,3,4,4] = LeakyRelu(%s)
output "y" = %y)"),
            "Conv+Add+LeakyRelu");
}

TEST(FuseElementwise, ReadersOutsideMakeOutputs) {
  const graph::Graph graph =
      graph_of(conv + "%y : f32[1,3,4,4] = Relu(%c)\noutput \"y\" = %y\noutput \"c\" = %c");
  const FusionGroups groups = fuse_elementwise(graph);
  ASSERT_EQ(groups.groups.size(), 1u);
  EXPECT_EQ(groups.groups[0].outputs.size(), 2u);
  EXPECT_EQ(groups.groups[0].inputs.size(), 2u);
  EXPECT_EQ(groups.groups[0].shape, (Shape{1, 3, 4, 4}));
  EXPECT_EQ(to_string(graph, groups), "Conv 'conv1' + Relu -> 2 outputs\n");
  EXPECT_EQ(fuse_elementwise(graph, {.single_output = true}).groups.size(), 2u);
}

TEST(FuseElementwise, SideBranchesJoinWhenTheyDoNotFeedTheProduct) {
  EXPECT_EQ(groups_of(conv + R"(input %z : f32[1,3,4,4]
%a : f32[1,3,4,4] = Sigmoid(%z)
%y : f32[1,3,4,4] = Mul(%c, %a)
output "y" = %y)"),
            "Conv+Sigmoid+Mul");
}

TEST(FuseElementwise, WhatFeedsTheProductStaysOutside) {
  EXPECT_EQ(groups_of(R"(input %x : f32[2,2]
%a : f32[2,2] = Exp(%x)
%p : f32[2,2] = MatMul(%a, %x)
%y : f32[2,2] = Add(%p, %a)
output "y" = %y)"),
            "Exp | MatMul+Add");
}

TEST(FuseElementwise, TwoProductsStayApart) {
  EXPECT_EQ(groups_of(R"(input %x : f32[2,2]
%p : f32[2,2] = MatMul(%x, %x)
%q : f32[2,2] = Gemm(%x, %x)
%y : f32[2,2] = Add(%p, %q)
output "y" = %y)"),
            "MatMul | Gemm+Add");
}

TEST(FuseElementwise, TreesOfElementwiseNodesAreOneGroup) {
  EXPECT_EQ(groups_of(R"(input %m : f32[8]
input %g : f32[8]
constant %b : f32[] = [0.9]
constant %c : f32[] = [0.1]
%p : f32[8] = Mul(%m, %b)
%q : f32[8] = Mul(%g, %c)
%y : f32[8] = Add(%p, %q)
output "y" = %y)"),
            "Mul+Mul+Add");
}

TEST(FuseElementwise, OtherShapesAndPhasesStayApart) {
  EXPECT_EQ(groups_of(R"(input %x : f32[4]
input %z : f32[3,4]
%a : f32[4] = Exp(%x)
%y : f32[3,4] = Add(%z, %a)
output "y" = %y)"),
            "Exp | Add");
  EXPECT_EQ(
      groups_of(
          "input %x : f32[4]\n%a : f32[4] = Exp(%x)\n%y : f32[4] = Neg(%a) @backward\noutput \"y\" = %y"),
      "Exp | Neg");
}

TEST(FuseElementwise, RefusesCycles) {
  // Exp + Add would need the sum of its own first half.
  EXPECT_EQ(groups_of(R"(input %x : f32[4]
%a : f32[4] = Exp(%x)
%s : f32[1] = ReduceSum(%a)
%y : f32[4] = Div(%a, %s)
output "y" = %y)"),
            "Exp | ReduceSum | Div");
}

TEST(FuseElementwise, RefusesCyclesThroughOtherGroups) {
  // b joins a; d reads b's group and the softmax between, c's group is not a detour but the softmax is.
  EXPECT_EQ(groups_of(R"(input %x : f32[4]
%a : f32[4] = Exp(%x)
%s : f32[4] = Softmax(%a)
%t : f32[4] = Neg(%s)
%b : f32[4] = Abs(%a)
%y : f32[4] = Add(%b, %t)
output "y" = %y)"),
            "Exp+Abs | Softmax | Neg+Add");
}

TEST(FuseElementwise, HonoursItsOptions) {
  const std::string chain = R"(input %x : f32[4]
%a : f32[4] = Exp(%x)
%b : f32[4] = Neg(%a)
%y : f32[4] = Abs(%b)
output "y" = %y)";
  EXPECT_EQ(groups_of(chain), "Exp+Neg+Abs");
  EXPECT_EQ(groups_of(chain, {.most_nodes = 2}), "Exp+Neg | Abs");
  EXPECT_EQ(groups_of(chain, {.never_fuse = {"Neg"}}), "Exp | Neg | Abs");
}

TEST(FuseElementwise, UpdatesAreReadersToo) {
  const graph::Graph graph = graph_of(R"(state %s : f32[2] = [0.0, 0.0]
%a : f32[2] = Exp(%s) @update
%b : f32[2] = Neg(%a) @update
update %s = %a
output "b" = %b)");
  EXPECT_EQ(fuse_elementwise(graph).groups.at(0).outputs.size(), 2u);
}

// Random graphs of element-wise nodes, sums and products: every node is in one group, and the groups can
// run in their order, each whole.
graph::Graph random_graph(std::uint64_t seed) {
  RandomStream random(seed);
  graph::Graph graph;
  op::Builder builder(graph);
  std::vector<op::Var> values = {builder.input("x", ElementType::f32, {4, 4})};
  const auto some = [&] { return values[random.below(values.size())]; };
  for (int i = 0; i < 30; ++i) {
    static constexpr const char* binary[] = {"Add", "Mul", "MatMul", "Sub"};
    static constexpr const char* unary[] = {"Exp", "Relu", "Softmax", "Transpose"};
    builder.set_phase(i < 20 ? graph::Phase::forward : graph::Phase::backward);
    values.push_back(random.below(2) ? builder.node1(binary[random.below(4)], {some(), some()})
                                     : builder.node1(unary[random.below(4)], {some()}));
  }
  builder.output("y", values.back());
  return graph;
}

TEST(FuseElementwise, GroupsCanRunInTheirOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const graph::Graph graph = random_graph(seed);
    for (const FusionOptions& options : {FusionOptions{}, FusionOptions{.single_output = true}}) {
      const FusionGroups groups = fuse_elementwise(graph, options);
      std::set<graph::ValueId> ready(graph.inputs().begin(), graph.inputs().end());
      std::size_t nodes = 0;
      for (const FusionGroup& group : groups.groups) {
        for (graph::ValueId input : group.inputs) ASSERT_TRUE(ready.contains(input)) << "seed " << seed;
        ready.insert(group.outputs.begin(), group.outputs.end());
        nodes += group.elementwise.size() + group.anchor.valid();
        ASSERT_TRUE(!options.single_output || group.outputs.size() <= 1) << "seed " << seed;
      }
      ASSERT_EQ(nodes, graph.node_count());
    }
  }
}

}  // namespace
}  // namespace superstep::transform
