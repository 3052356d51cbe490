// Looking for the pass that changes what a graph computes, among some that do not.
#include <functional>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/transform/bisect.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/rewrite.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

const char* const model = R"(input %x : f32[2,3]
state %w : f32[3,2] = [0.5, -1.0, 0.25, 2.0, -0.75, 1.0]
state %b : f32[2] = [0.0, 0.0]
%h : f32[2,2] = Gemm(%x, %w, %b)
%t : f32[2,2] = Tanh(%h)
%y : f32[2,2] = Sub(%t, %h)
output "y" = %y
)";

// Each a plausible mistake that leaves the graph valid.
graph::Graph with(const graph::Graph& graph, std::string_view op,
                  const std::function<Var(Rewrite&, const Node&)>& make) {
  return rewrite(graph, [&](Rewrite& rewriting, const Node& node) {
    if (node.op != op) return rewriting.keep(node);
    const Var made = make(rewriting, node);
    rewriting.replace(node, std::span(&made, 1));
  });
}

graph::Graph turn_differences_round(const graph::Graph& graph) {
  return with(graph, "Sub", [](Rewrite& rewriting, const Node& node) {
    return rewriting.builder().node1("Sub", {rewriting.now(node.inputs[1]), rewriting.now(node.inputs[0])});
  });
}

// The bias is zero when the model is new: it must be seen all the same.
graph::Graph lose_biases(const graph::Graph& graph) {
  return with(graph, "Gemm", [](Rewrite& rewriting, const Node& node) {
    return rewriting.builder().node1("Gemm", {rewriting.now(node.inputs[0]), rewriting.now(node.inputs[1])},
                                     node.attributes);
  });
}

graph::Graph approximate(const graph::Graph& graph) {
  return with(graph, "Tanh", [](Rewrite& rewriting, const Node& node) {
    const Var x = rewriting.now(node.inputs[0]);
    return x - x * x * x / rewriting.builder().constant(Tensor::scalar(3.0f));
  });
}

graph::Graph forget_updates(const graph::Graph& graph) {
  Rewrite rewriting(graph);
  rewriting.visit_nodes([&](const Node& node) { rewriting.keep(node); });
  rewriting.carry_outputs();
  return std::move(rewriting.graph());
}

std::vector<Pass> with_planted(std::size_t at, const Pass& planted) {
  std::vector<Pass> passes(standard_passes().begin(), standard_passes().end());
  passes.insert(passes.begin() + static_cast<std::ptrdiff_t>(at), planted);
  return passes;
}

TEST(Bisect, FindsNothingAmongPassesThatAreRight) {
  const Bisection found = bisect(graph_of(model), standard_passes());
  EXPECT_EQ(found.wrong(), nullptr);
  EXPECT_EQ(found.steps.size(), standard_passes().size());
}

TEST(Bisect, NamesTheWrongPassWhereverItStands) {
  for (std::size_t at = 0; at <= standard_passes().size(); ++at) {
    const auto passes =
        with_planted(at, {.name = "turn_differences_round", .run = rebuild(turn_differences_round)});
    const Bisection found = bisect(graph_of(model), passes);
    ASSERT_NE(found.wrong(), nullptr) << at;
    EXPECT_EQ(found.wrong()->pass, "turn_differences_round");
    EXPECT_EQ(found.wrong()->position, at);
    EXPECT_EQ(found.wrong()->where, "output y");
    EXPECT_EQ(found.steps.size(), at + 1) << "it stops there";
  }
}

TEST(Bisect, SeesBiasesThatAreZero) {
  const Pass pass{.name = "lose_biases", .run = rebuild(lose_biases), .rounding = Pass::sums};
  const Bisection found = bisect(graph_of(model), std::span(&pass, 1));
  ASSERT_NE(found.wrong(), nullptr);
  EXPECT_GT(found.wrong()->difference, 0.01);
}

// What a pass may do to results is what it says.
TEST(Bisect, HoldsAPassToItsWord) {
  Pass pass{.name = "approximate", .run = rebuild(approximate)};
  for (const double rounding : {0.0, Pass::sums, 1.0}) {
    pass.rounding = rounding;
    EXPECT_EQ(bisect(graph_of(model), std::span(&pass, 1)).wrong() != nullptr, rounding < 1) << rounding;
  }
}

TEST(Bisect, LooksAtStatesAndAtWhatFollowsATrainingStep) {
  const Pass step = training_step_pass({}, {.kind = OptimizerKind::adam});
  const Pass wrong{.name = "forget_updates", .run = rebuild(forget_updates)};
  const std::vector<Pass> right{step, standard_passes()[0], standard_passes()[5]};
  EXPECT_EQ(bisect(graph_of(model), right).wrong(), nullptr);
  const std::vector<Pass> passes{right[0], right[1], wrong, right[2]};
  const Bisection found = bisect(graph_of(model), passes);
  ASSERT_NE(found.wrong(), nullptr);
  EXPECT_EQ(found.wrong()->pass, "forget_updates");
  EXPECT_TRUE(found.wrong()->where.starts_with("state ")) << found.wrong()->where;
}

TEST(Bisect, LeavesPassesOutByName) {
  const auto passes =
      with_planted(2, {.name = "turn_differences_round", .run = rebuild(turn_differences_round)});
  const Bisection found = bisect(graph_of(model), passes, {.disabled = {"turn_differences_round"}});
  EXPECT_EQ(found.wrong(), nullptr);
  EXPECT_EQ(found.steps.size(), standard_passes().size());
}

// Rounding to bf16 is what autocast is for; a product turned round behind it is not.
TEST(Bisect, TellsReducedPrecisionFromAMistake) {
  const Pass narrow = autocast_pass(ElementType::bf16);
  graph::Graph graph("wide");
  op::Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {4, 16});
  const Var h = b.node1("Gemm", {x, b.state("w", random_tensor(ElementType::f32, {16, 16}, 3))});
  b.output("y", b.node1("Sub", {h, x}));
  const std::vector<Pass> passes{
      narrow,
      {.name = "turn_differences_round", .run = rebuild(turn_differences_round), .rounding = Pass::sums}};
  const Bisection found = bisect(graph, passes);
  ASSERT_NE(found.wrong(), nullptr);
  EXPECT_EQ(found.wrong()->pass, "turn_differences_round");
  EXPECT_TRUE(found.steps[0].changed);
  EXPECT_GT(found.steps[0].difference, 0);
}

// ---- what says that a pass changed something ------------------------------------------------------------

TEST(SameStructure, LooksThroughIdsAlone) {
  const graph::Graph graph = graph_of(model);
  EXPECT_TRUE(same_structure(graph, graph));
  EXPECT_TRUE(same_structure(graph, rewrite(graph, [](Rewrite& r, const Node& node) { r.keep(node); })));
  // Constants in another order are the same graph.
  const std::string uses = "%h : f32[] = Mul(%a, %b)\noutput \"y\" = %h";
  const std::string a = "constant %a : f32[] = [1.0]\n", b = "constant %b : f32[] = [2.0]\n";
  EXPECT_TRUE(same_structure(graph_of(a + b + uses), graph_of(b + a + uses)));
}

TEST(SameStructure, SeesEveryDifference) {
  const graph::Graph graph = graph_of(model);
  const std::string text = model;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return graph_of(other);
  };
  EXPECT_FALSE(same_structure(graph, changed("Tanh(", "Relu(")));
  EXPECT_FALSE(same_structure(graph, changed("Sub(%t, %h)", "Sub(%h, %t)")));
  EXPECT_FALSE(same_structure(graph, changed("Gemm(%x, %w, %b)", "Gemm(%x, %w)")));
  EXPECT_FALSE(same_structure(graph, changed("Gemm(%x, %w, %b)", "Gemm(%x, %w, %b) {alpha = 2.0}")));
  EXPECT_FALSE(same_structure(graph, changed("Tanh(%h)", "Tanh(%h) @backward")));
  EXPECT_FALSE(same_structure(graph, changed("Tanh(%h)", "Tanh(%h) \"name\"")));
  EXPECT_FALSE(same_structure(graph, changed("output \"y\" = %y", "output \"y\" = %t")));
  EXPECT_FALSE(same_structure(graph, changed("output \"y\" = %y", "output \"z\" = %y")));
  EXPECT_FALSE(same_structure(graph, changed("output \"y\" = %y", "output \"y\" = %y\nupdate %b = %b")));
  const std::string constants = "constant %a : f32[] = [1.0]\n%h : f32[] = Neg(%a)\noutput \"y\" = %h";
  std::string others = constants;
  others.replace(others.find("1.0"), 3, "2.0");
  EXPECT_FALSE(same_structure(graph_of(constants), graph_of(others)));
}

TEST(Rebuild, SaysTheTruthAndLeavesAGraphAlone) {
  graph::Graph graph = graph_of(model);
  const graph::Value* before = &graph.values()[0];
  EXPECT_FALSE(rebuild([](const graph::Graph& g) { return prune(g); })(graph));
  EXPECT_EQ(before, &graph.values()[0]) << "the same object";
  EXPECT_TRUE(rebuild(turn_differences_round)(graph));
  EXPECT_FALSE(same_structure(graph, graph_of(model)));
}

}  // namespace
}  // namespace superstep::transform
