#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "superstep/base/random.h"
#include "superstep/graph/text.h"
#include "superstep/graph/verify.h"
#include "tests/contains.h"
#include "tests/graph/random_graph.h"

namespace superstep::graph {
namespace {

Graph parsed(std::string_view text) { return value_or_throw(parse(text)); }

std::string error_of(std::string_view text) {
  const auto result = parse(text);
  return result ? "parsed" : result.error().what();
}

std::string in_graph(const std::string& body) { return "graph \"g\" {\n" + body + "\n}"; }

TEST(Text, PrintsWhatTheHeaderShows) {
  Graph graph("mlp");
  const ValueId x = graph.add_input("x", {ElementType::f32, Shape{8, 16}});
  const ValueId w = graph.add_state("w", Tensor::full(ElementType::f32, {2}, 0.1));
  const ValueId axes = graph.add_constant("axes", Tensor::from<std::int64_t>({1}, {1}));
  const ValueType out{ElementType::f32, Shape{8, 64}};
  const std::string h = "h";
  const NodeId gemm = graph.add_node("Gemm", {x, w, ValueId()}, std::span(&out, 1),
                                     {{"alpha", 1.0}, {"transB", std::int64_t{0}}}, "dense1", Phase::backward,
                                     std::span(&h, 1));
  graph.add_output("y", graph.node(gemm).outputs[0]);
  graph.set_update(w, axes);
  EXPECT_EQ(to_text(graph), R"(graph "mlp" {
  input %x : f32[8,16]
  state %w : f32[2] = [0.1, 0.1]
  constant %axes : i64[1] = [1]
  %h : f32[8,64] = Gemm(%x, %w, _) {alpha = 1.0, transB = 0} "dense1" @backward
  output "y" = %h
  update %w = %axes
}
)");
}

// Values that still have a name in the graph, in order, with everything that tells them apart.
void expect_same_values(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.node_count(), b.node_count());
  for (std::size_t i = 0; i < a.node_count(); ++i) {
    EXPECT_EQ(a.nodes()[i].op, b.nodes()[i].op);
    EXPECT_EQ(a.nodes()[i].name, b.nodes()[i].name);
    EXPECT_EQ(a.nodes()[i].phase, b.nodes()[i].phase);
    ASSERT_EQ(a.nodes()[i].inputs.size(), b.nodes()[i].inputs.size());
    ASSERT_EQ(a.nodes()[i].outputs.size(), b.nodes()[i].outputs.size());
  }
  ASSERT_EQ(a.states().size(), b.states().size());
  for (std::size_t i = 0; i < a.states().size(); ++i) {
    const Value &left = a.value(a.states()[i]), &right = b.value(b.states()[i]);
    EXPECT_EQ(left.name, right.name);
    EXPECT_TRUE(same(left.data, right.data)) << left.name;
  }
}

TEST(Text, RoundTripsRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Graph graph = RandomGraph(seed).make();
    const std::string text = to_text(graph);
    const auto back = parse(text);
    ASSERT_TRUE(back) << "seed " << seed << ": " << back.error().what() << "\n" << text;
    ASSERT_EQ(to_text(*back), text) << "seed " << seed;
    expect_same_values(graph, *back);
  }
}

TEST(Text, RoundTripsTensorsOfEveryTypeBitByBit) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Graph graph;
    graph.add_constant("c", RandomGraph(seed).tensor());
    const Graph back = parsed(to_text(graph));
    ASSERT_TRUE(same(graph.value(ValueId(0)).data, back.value(ValueId(0)).data)) << to_text(graph);
  }
}

template <class T, class Bits>
void expect_every_bit_pattern_survives(int stride) {
  for (std::uint32_t bits = 0; bits < 0x10000; bits += static_cast<std::uint32_t>(stride)) {
    Tensor tensor(element_type_of<T>, {1});
    tensor.as<T>()[0] = std::bit_cast<T>(static_cast<Bits>(bits));
    Graph graph;
    graph.add_constant("c", tensor);
    ASSERT_TRUE(same(tensor, parsed(to_text(graph)).value(ValueId(0)).data)) << bits;
  }
}

TEST(Text, RoundTripsSixteenBitFloats) {
  expect_every_bit_pattern_survives<f16, std::uint16_t>(7);
  expect_every_bit_pattern_survives<bf16, std::uint16_t>(7);
}

TEST(Text, WritesShortDecimalsAndOddNansAsBytes) {
  Graph graph;
  graph.add_constant("a", Tensor::full(ElementType::bf16, {1}, 0.1));
  graph.add_constant("b", Tensor::full(ElementType::f16, {}, 65504));
  graph.add_constant("c", Tensor::from<float>({3}, {-0.0f, std::numeric_limits<float>::infinity(), 1e-45f}));
  graph.add_constant("d", Tensor::from<float>({1}, {std::numeric_limits<float>::quiet_NaN()}));
  graph.add_constant("e", Tensor::from<float>({1}, {std::bit_cast<float>(0x7fc00001u)}));
  graph.add_constant("f", Tensor(ElementType::u8, {17}));
  const std::string text = to_text(graph);
  EXPECT_TRUE(contains(text, "bf16[1] = [0.1]"));
  EXPECT_TRUE(contains(text, "f16[] = [6.55e+04]"));
  EXPECT_TRUE(contains(text, "[-0.0, inf, 1e-45]"));
  EXPECT_TRUE(contains(text, "[nan]"));
  EXPECT_TRUE(contains(text, "base64\"AQDAfw==\""));
  EXPECT_TRUE(contains(text, "u8[17] = base64\"AAAA"));
  EXPECT_TRUE(contains(to_text(graph, {.data = false}), "u8[17] = ...\n"));
}

TEST(Text, KeepsNamesThatAChanceNameWouldTake) {
  // The output left out is nameless and comes first: it must not take %v1 from the one that is named so.
  const std::string text = "graph \"g\" {\n  input %x : f32[]\n  _, %v1 : f32[] = Split(%x)\n}\n";
  EXPECT_EQ(to_text(parsed(text)), text);
}

TEST(Text, TakesCommentsAndAnyWhiteSpace) {
  const Graph graph =
      parsed("graph \"g\"{// a comment\ninput %x:0 : f32[2 , 3]\n\t%y:f :i64[]=Op( _ ,%x:0)}");
  EXPECT_EQ(graph.node_count(), 1u);
  EXPECT_FALSE(graph.nodes()[0].inputs[0].valid());
}

struct Refused {
  const char* body;
  const char* message;
};

class Refuses : public ::testing::TestWithParam<Refused> {};

TEST_P(Refuses, WithLineAndColumn) {
  EXPECT_TRUE(contains(error_of(in_graph(GetParam().body)), GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Text, Refuses,
    ::testing::Values(
        Refused{"%y : f32[] = Op(%x)", "line 2, column 17: there is no value %x before this place"},
        Refused{"input %x : f32[]\ninput %x : f32[]", "line 3, column 7: %x is there already"},
        Refused{"input %x: f32[]", "expected ':' between a value and its type, with a space before it"},
        Refused{"input %x : f33[]", "line 2, column 12: 'f33' is no element type"},
        Refused{"input %x : f32[-1]", "an extent is a whole number, 0 or more"},
        Refused{"input %x : f32[4000000000,4000000000]", "too many elements"},
        Refused{"constant %c : f32[4000000000] = [1.0]",
                "1 elements are not a tensor of type f32[4000000000]"},
        Refused{"constant %c : i8[2] = [1, 300]", "line 2, column 27: '300' is no i8"},
        Refused{"constant %c : bool[1] = [2]", "'2' is no bool"},
        Refused{"constant %c : bool[1] = base64\"Ag==\"", "a bool is neither 0 nor 1"},
        Refused{"constant %c : f32[1] = [1e99]", "'1e99' is no f32"},
        Refused{"constant %c : f32[1] = base64\"AAA\"", "this is not base64"},
        Refused{"constant %c : f32[2] = base64\"AAAA\"", "3 bytes are not a tensor of type f32[2]"},
        Refused{"constant %c : f32[1] = ...", "expected '['"},
        Refused{"%\"\" : f32[] = Op()", "a value must have a name"},
        Refused{"%y : f32[] = \"\"()", "an operator must have a name"},
        Refused{"%y : f32[] = Op() {a = 1, a = 2}", "attribute 'a' is given twice"},
        Refused{"%y : f32[] = Op() {a = 99999999999999999999}", "is no integer"},
        Refused{"%y : f32[] = Op() {a = [1, 2.0]}", "'2.0' is no integer"},
        Refused{"%y : f32[] = Op() {a = bits(xyz)}", "expected hexadecimal digits"},
        Refused{"%y : f32[] = Op() @sideways", "expected forward, backward or update"},
        Refused{"%y : f32[], %y : f32[] = Op()", "%y is there already"},
        Refused{"input %x : f32[]\nupdate %x = %x", "only state is updated"},
        Refused{"state %w : f32[0] = []\nupdate %w = %w\nupdate %w = %w", "this state is updated already"},
        Refused{"output \"y = %x", "line 2, column 8: these quotes are never closed"},
        Refused{"output \"\\q\" = %x", "an escape is one of"},
        Refused{"nonsense", "expected a value, a node, an output, an update or '}'"}));

TEST(Text, RefusesWhatIsAroundTheGraph) {
  EXPECT_TRUE(contains(error_of(""), "line 1, column 1: expected 'graph'"));
  EXPECT_TRUE(contains(error_of("graph \"g\" {"), "expected a value, a node"));
  EXPECT_TRUE(contains(error_of("graph \"g\" {} graph"), "text after the end of the graph"));
}

TEST(Text, RefusesBottomlessNesting) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "graph \"\" { _ = Op() {a = ";
  EXPECT_TRUE(contains(error_of(text), "nested too deep"));
}

// Hostile input: any text either is refused or gives a graph that prints and parses to the same again.
TEST(Text, SurvivesFlippedBytes) {
  RandomStream random(7);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string text = to_text(RandomGraph(seed).make());
    for (int i = 0; i < 100; ++i) {
      std::string broken = text;
      for (std::uint64_t k = 0; k <= random.below(3); ++k)
        broken[random.below(broken.size())] = static_cast<char>(random.below(256));
      const auto result = parse(broken);
      ASSERT_TRUE(!result || to_text(parsed(to_text(*result))) == to_text(*result)) << broken;
    }
  }
}

TEST(Text, SurvivesTruncation) {
  const std::string text = to_text(RandomGraph(3).make());
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    ASSERT_FALSE(parse(std::string_view(text).substr(0, length))) << length;
}

TEST(Text, DrawsAPicture) {
  const Graph graph = parsed(in_graph(R"(input %x : f32[2]
    state %"w\"1" : f32[2] = [1.0, 2.0]
    %y : f32[2] = Add(%x, %"w\"1") "first" @update
    output "z" = %y
    update %"w\"1" = %y)"));
  const std::string dot = to_dot(graph);
  EXPECT_TRUE(contains(dot, "digraph \"g\" {"));
  EXPECT_TRUE(contains(dot, "v1 [shape=box, peripheries=2, label=\"w\\\"1\\nf32[2]\"]"));
  EXPECT_TRUE(contains(dot, "label=\"Add\\nfirst\""));
  EXPECT_TRUE(contains(dot, "v0 -> n0"));
  EXPECT_TRUE(contains(dot, "n0 -> o0 [label=\"f32[2]\""));
  EXPECT_TRUE(contains(dot, "n0 -> v1 [label=\"f32[2]\", fontsize=8, style=dashed"));
}

}  // namespace
}  // namespace superstep::graph
