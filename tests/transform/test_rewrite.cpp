#include "superstep/op/elementwise/unary.h"
#include "superstep/transform/rewrite.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

const char* const two_layers = R"(input %x : f32[2]
state %w : f32[2] = [1.0, 2.0]
constant %c : f32[2] = [3.0, 4.0]
%h : f32[2] = Mul(%x, %w) "scale"
%unused : f32[2] = Neg(%h) "unused"
%y : f32[2] = Add(%h, %c) "shift" @backward
output "y" = %y
update %w = %h
)";

TEST(Rewrite, KeepsEverything) {
  const Graph graph = graph_of(two_layers);
  const Graph copy = rewrite(graph, [](Rewrite& r, const Node& node) { r.keep(node); });
  EXPECT_EQ(body_of(copy), R"(input %x : f32[2]
state %w : f32[2] = [1.0, 2.0]
%h : f32[2] = Mul(%x, %w) "scale"
%unused : f32[2] = Neg(%h) "unused"
constant %c : f32[2] = [3.0, 4.0]
%y : f32[2] = Add(%h, %c) "shift" @backward
output "y" = %y
update %w = %h
)");
}

TEST(Rewrite, ReplacedNodesHandOnNamePhaseAndValueName) {
  const Graph graph = graph_of(two_layers);
  const Graph changed = rewrite(graph, [](Rewrite& r, const Node& node) {
    if (node.op != "Add") return r.keep(node);
    const Var twice = op::exp(op::abs(r.now(node.inputs[0])));
    r.replace(node, std::span(&twice, 1));
  });
  EXPECT_TRUE(contains(body_of(changed), "%y : f32[2] = Exp(%v4) \"shift\" @backward"));
  EXPECT_TRUE(contains(body_of(changed), "output \"y\" = %y"));
}

// Made on the way, a value has its number for a name: that of another one of the old graph, here.
TEST(Rewrite, OldValuesKeepTheirNames) {
  const Graph graph = graph_of(R"(input %x : f32[2]
%v1 : f32[2] = Add(%x, %x)
%v2 : f32[2] = Mul(%v1, %v1)
output "y" = %v2)");
  const Graph changed = rewrite(graph, [](Rewrite& r, const Node& node) {
    const Var first = op::abs(r.now(node.inputs[0]));
    if (node.op == "Mul") return r.keep(node);
    const Var second = op::exp(first);
    r.replace(node, std::span(&second, 1));
  });
  for (const char* name : {"v1", "v2"}) ASSERT_TRUE(changed.find_value(name).valid()) << name;
  EXPECT_EQ(changed.node(changed.value(changed.find_value("v1")).producer).op, "Exp");
  EXPECT_EQ(changed.node(changed.value(changed.find_value("v2")).producer).op, "Mul");
  verified(changed);
}

TEST(Rewrite, RefusesToReadWhatWasDropped) {
  const Graph graph = graph_of(two_layers);
  try {
    rewrite(graph, [](Rewrite& r, const Node& node) {
      if (node.op != "Mul") r.keep(node);
    });
    FAIL() << "a dropped value was read";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "node 'unused' (Neg): %h was dropped but is still read"));
  }
}

TEST(Rewrite, CarriesOutputsLeftOut) {
  const Graph graph = graph_of(R"(input %x : f32[1,1,4,4]
%y : f32[1,1,2,2] = MaxPool(%x) {kernel_shape = [2, 2], strides = [2, 2]}
output "y" = %y)");
  const Graph copy = rewrite(graph, [](Rewrite& r, const Node& node) { r.keep(node); });
  EXPECT_EQ(copy.nodes()[0].outputs.size(), 1u);
}

TEST(Prune, RemovesWhatNobodyNeeds) {
  const Graph pruned = prune(graph_of(two_layers));
  EXPECT_EQ(operators_of(pruned), (std::vector<std::string>{"Mul", "Add"}));
  EXPECT_EQ(pruned.states().size(), 1u);
}

TEST(Prune, KeepsInputsAndStatesThatNobodyReads) {
  const Graph pruned = prune(graph_of("input %x : f32[1]\nstate %s : f32[1] = [1.0]\noutput \"y\" = %x"));
  EXPECT_EQ(pruned.inputs().size(), 1u);
  EXPECT_EQ(pruned.states().size(), 1u);
}

}  // namespace
}  // namespace superstep::transform
