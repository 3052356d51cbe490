#include <gtest/gtest.h>

#include "superstep/graph/text.h"
#include "superstep/graph/verify.h"
#include "tests/contains.h"

namespace superstep::graph {
namespace {

// Every operator gives one output of the type of its first input; "Two" gives two.
Result<std::vector<ValueType>> infer(const Graph& graph, const Node& node) {
  if (node.op == "Unknown") return failure(ErrorCode::unsupported, "there is no such operator", node.op);
  return std::vector<ValueType>(node.op == "Two" ? 2 : 1, graph.type(node.inputs.at(0)));
}

std::string verdict(const Graph& graph) {
  const Status status = verify(graph, infer);
  return status ? "good" : status.error().what();
}

std::string verdict(const std::string& body) {
  return verdict(value_or_throw(parse("graph \"g\" {\n" + body + "\n}")));
}

TEST(Verify, TakesWhatIsRight) {
  EXPECT_EQ(verdict("input %x : f32[2]\nstate %s : f32[2] = [1.0, 2.0]\n%a : f32[2], %b : f32[2] = Two(%x)\n"
                    "_, %c : f32[2] = Two(%s)\noutput \"a\" = %a\nupdate %s = %c"),
            "good");
}

TEST(Verify, NamesTheNode) {
  EXPECT_TRUE(contains(verdict("input %x : f32[2]\n%y : f32[3] = Op(%x) \"conv1\""),
                       "node 0 (Op 'conv1'): output %y is declared f32[3], its operator gives f32[2]"));
  EXPECT_TRUE(contains(verdict("input %x : f32[2]\n%y : f32[2] = Unknown(%x)"), "there is no such operator"));
  EXPECT_TRUE(contains(verdict("input %x : f32[2]\n%y : f32[2], %z : f32[2] = Op(%x)"),
                       "has 2 outputs, its operator gives 1"));
}

TEST(Verify, RefusesTwoOutputsOfOneNameAndUpdatesOfAnotherType) {
  EXPECT_TRUE(contains(verdict("input %x : f32[2]\noutput \"y\" = %x\noutput \"y\" = %x"),
                       "output y: two outputs have this name"));
  EXPECT_TRUE(contains(verdict("input %x : f32[3]\nstate %s : f32[2] = [1.0, 2.0]\nupdate %s = %x"),
                       "update of %s: the state is f32[2], the new value f32[3]"));
}

TEST(Verify, RefusesAValueThatIsNeverComputed) {
  Graph graph;
  const ValueId x = graph.add_input("x", {ElementType::f32, {2}});
  const ValueType type{ElementType::f32, {2}};
  const NodeId node = graph.add_node("Op", {x}, std::span(&type, 1));
  graph.add_output("y", graph.node(node).outputs[0]);
  graph.drop_output(node, 0);
  EXPECT_TRUE(contains(verdict(graph), "output y: is never computed"));
}

}  // namespace
}  // namespace superstep::graph
