// The pass of docs/add-a-pass.md, run through the pipeline with a table of its own.
#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/rewrite.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

// [add-a-pass]
// A power of two between 2^-10 and 2^10: its inverse is exact in every floating-point type.
bool has_exact_inverse(double x) {
  int exponent = 0;
  return std::abs(std::frexp(x, &exponent)) == 0.5 && std::abs(exponent - 1) <= 10;
}

// The inverse of a constant divisor, where multiplying by it gives the same bits; otherwise no value.
Var exact_inverse(Rewrite& rewriting, const Node& node) {
  const graph::Value& divisor = rewriting.old().value(node.inputs[1]);
  if (divisor.kind != graph::ValueKind::constant || !is_floating(divisor.type.element)) return {};
  Tensor inverse(divisor.type.element, divisor.type.shape);
  for (std::int64_t i = 0; i < inverse.element_count(); ++i) {
    if (!has_exact_inverse(divisor.data.at(i))) return {};
    inverse.set(i, 1 / divisor.data.at(i));
  }
  return rewriting.builder().constant(inverse);
}

// x / c becomes x * (1 / c) where that is exact: a multiplication is several times faster.
bool multiply_by_inverses(Graph& graph) {
  bool changed = false;
  Graph result = rewrite(graph, [&](Rewrite& rewriting, const Node& node) {
    const Var inverse = node.op == "Div" ? exact_inverse(rewriting, node) : Var();
    if (!inverse.valid()) return rewriting.keep(node);
    const Var product = rewriting.now(node.inputs[0]) * inverse;
    rewriting.replace(node, std::vector{product});
    changed = true;
  });
  if (changed) graph = std::move(result);
  return changed;
}
// [end]

// [add-a-pass]
TEST(MultiplyByInverses, TakesPowersOfTwo) {
  const Graph graph = after(multiply_by_inverses,
                            "input %x : f32[3]\n"
                            "constant %c : f32[] = [4.0]\n"
                            "%y : f32[3] = Div(%x, %c)\n"
                            "output \"y\" = %y");
  EXPECT_EQ(operators_of(graph), std::vector<std::string>{"Mul"});
}

TEST(MultiplyByInverses, LeavesWhatWouldRound) {
  for (const char* divisor : {"3.0", "0.0", "4096.0", "nan"}) {
    const Graph graph =
        after(multiply_by_inverses, std::string("input %x : f32[3]\nconstant %c : f32[] = [") + divisor +
                                        "]\n" + "%y : f32[3] = Div(%x, %c)\noutput \"y\" = %y");
    EXPECT_EQ(operators_of(graph), std::vector<std::string>{"Div"}) << divisor;
  }
}
// [end]

TEST(AddAPass, RunsInAPipelineByName) {
  const Pass passes[] = {{"multiply_by_inverses", multiply_by_inverses}};
  const Graph before = graph_of(
      "input %x : f16[2]\nconstant %c : f16[2] = [2.0, -0.5]\n%y : f16[2] = Div(%x, %c)\noutput \"y\" = %y");
  Graph graph = before;
  const PipelineReport report = run_pipeline(graph, passes);
  EXPECT_TRUE(report.records.at(0).changed);
  expect_same_results(before, graph);
  EXPECT_FALSE(run_pipeline(graph, passes).records.at(0).changed);  // nothing is left to do

  Graph untouched = before;
  EXPECT_TRUE(run_pipeline(untouched, passes, {.disabled = {"multiply_by_inverses"}}).records.empty());
  EXPECT_EQ(count_of(untouched, "Div"), 1);
}

TEST(AddAPass, LeavesIntegersAndVariableDivisors) {
  EXPECT_EQ(count_of(after(multiply_by_inverses,
                           "input %x : i64[2]\nconstant %c : i64[] = [2]\n%y : i64[2] = Div(%x, %c)\n"
                           "output \"y\" = %y"),
                     "Div"),
            1);
  EXPECT_EQ(count_of(after(multiply_by_inverses,
                           "input %x : f32[2]\ninput %z : f32[2]\n%y : f32[2] = Div(%x, %z)\n"
                           "output \"y\" = %y"),
                     "Div"),
            1);
}

// What the pipeline does with a pass that breaks a graph: it says which one it was.
bool drop_the_type(Graph& graph) {
  Graph broken("broken");
  const ValueId x = broken.add_input("x", {ElementType::f32, {2}});
  const graph::ValueType wrong{ElementType::f32, {3}};
  broken.add_output("y", broken.node(broken.add_node("Relu", {x}, std::span(&wrong, 1))).outputs[0]);
  graph = std::move(broken);
  return true;
}

TEST(AddAPass, IsNamedWhenItBreaksAGraph) {
  const Pass passes[] = {{"drop_the_type", drop_the_type}};
  Graph graph("g");
  try {
    run_pipeline(graph, passes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "failed after drop_the_type"));
  }
}

}  // namespace
}  // namespace superstep::transform
