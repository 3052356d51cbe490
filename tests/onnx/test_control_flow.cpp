// If, Loop and Scan against what they must give, worked out by hand; and every refusal.
#include "superstep/transform/training/differentiate.h"
#include "tests/onnx/support.h"

namespace superstep::onnx {
namespace {

using testing::attribute;
using testing::boolean_type;
using testing::contains;
using testing::elements;
using testing::error_of;
using testing::f32;
using testing::graph;
using testing::graph_attribute;
using testing::GraphParts;
using testing::i64;
using testing::node;
using testing::parse;
using testing::port;
using testing::run;
using testing::values;
using Elements = std::vector<double>;

// if c then x + x else -x, both reading x from outside.
GraphParts if_parts(Message other = node("Neg", {"x"}, {"b"})) {
  const Message then_graph =
      graph({.nodes = {node("Add", {"x", "x"}, {"a"})}, .outputs = {port("a", f32, {})}});
  const Message else_graph = graph({.nodes = {std::move(other)}, .outputs = {port("b", f32, {})}});
  return {.nodes = {node(
              "If", {"c"}, {"y"},
              {graph_attribute("then_branch", then_graph), graph_attribute("else_branch", else_graph)})},
          .inputs = {port("x", f32, {"2"})},
          .outputs = {port("y", f32, {})}};
}

TEST(If, AKnownConditionTakesItsBranch) {
  for (const bool condition : {true, false}) {
    GraphParts parts = if_parts();
    parts.initializers = {testing::boolean("c", condition)};
    const Model model = parse(parts);
    EXPECT_EQ(model.import().node_count(), 1u);
    EXPECT_EQ(elements(run(model, {values({1, 2})})[0]), condition ? (Elements{2, 4}) : (Elements{-1, -2}));
  }
}

TEST(If, AnUnknownConditionSelects) {
  GraphParts parts = if_parts();
  parts.inputs.push_back(port("c", boolean_type, {"1"}));
  for (const bool condition : {true, false}) {
    Tensor c(ElementType::boolean, {1});
    c.set(0, condition);
    EXPECT_EQ(elements(run(parse(parts), {values({1, 2}), c})[0]),
              condition ? (Elements{2, 4}) : (Elements{-1, -2}));
  }
}

TEST(If, BranchesOfDifferentShapesNeedAKnownCondition) {
  GraphParts parts = if_parts(node("ReduceSum", {"x"}, {"b"}));
  parts.inputs.push_back(port("c", boolean_type, {}));
  EXPECT_TRUE(
      contains(error_of([&] { parse(parts).import(); }),
               "node 'the_If' (If, operator set 17): output 0 is f32[2] one way and f32[1] the other"));
  ImportOptions options;
  options.values["c"] = Tensor::scalar(false);
  EXPECT_EQ(parse(parts).import(options).node_count(), 1u);
}

TEST(If, WhatABranchLacksIsToldOnce) {
  GraphParts parts = if_parts(node("Nonsense", {"x"}, {"b"}));
  parts.inputs.push_back(port("c", boolean_type, {}));
  const Findings findings = parse(parts).check();
  ASSERT_EQ(findings.unsupported.size(), 1u);
  EXPECT_TRUE(contains(to_string(findings.unsupported[0]), "else_branch/the_Nonsense"));
}

struct LoopSpec {
  std::vector<std::int64_t> trips = {3};  // empty: M is left out
  bool condition_depends = false;         // continues while the carried value is below `limit`
  bool scan = false;
  std::string extra_operator;  // applied to the scanned value
};

// v = v * f, f from outside; scans i.
GraphParts loop_parts(const LoopSpec& spec) {
  std::vector<Message> body{node("Mul", {"v", "f"}, {"v_next"})};
  body.push_back(spec.condition_depends ? node("Less", {"v_next", "limit"}, {"c_next"})
                                        : node("Identity", {"c"}, {"c_next"}));
  std::vector<Message> outputs{port("c_next", boolean_type, {}), port("v_next", f32, {})};
  testing::Names results{"v_last"};
  std::vector<Message> model_outputs{port("v_last", f32, {})};
  if (spec.scan) {
    body.push_back(node("Identity", {"i"}, {"seen"}));
    outputs.push_back(port("seen", i64, {}));
    results.push_back("all");
    model_outputs.push_back(port("all", i64, {}));
  }
  const Message body_graph =
      graph({.nodes = body,
             .inputs = {port("i", i64, {}), port("c", boolean_type, {}), port("v", f32, {})},
             .outputs = outputs});
  GraphParts parts{.nodes = {node("Loop", {spec.trips.empty() ? "" : "M", "", "x"}, results,
                                  {graph_attribute("body", body_graph)})},
                   .inputs = {port("x", f32, {"1"}), port("f", f32, {"1"}), port("limit", f32, {"1"})},
                   .outputs = model_outputs};
  if (!spec.trips.empty()) parts.initializers = {testing::integers("M", {}, spec.trips)};
  return parts;
}

std::vector<Tensor> run_loop(const LoopSpec& spec, float x, float factor, float limit) {
  return run(parse(loop_parts(spec)), {values({x}), values({factor}), values({limit})});
}
std::string loop_refusal(const LoopSpec& spec, ImportOptions options = {}) {
  return error_of([&] { parse(loop_parts(spec)).import(options); });
}

TEST(Loop, AKnownTripCountIsUnrolled) {
  EXPECT_EQ(elements(run_loop({}, 1, 2, 0)[0]), (Elements{8}));
  EXPECT_EQ(elements(run_loop({.trips = {0}}, 5, 2, 0)[0]), (Elements{5}));
}

TEST(Loop, ScanOutputsAreStacked) {
  const auto results = run_loop({.trips = {3}, .scan = true}, 1, 2, 0);
  EXPECT_EQ(results[1].shape(), (Shape{3}));
  EXPECT_EQ(elements(results[1]), (Elements{0, 1, 2}));
}

TEST(Loop, AConditionOnTheDataIsMasked) {
  // 1, 2, 4, 8: stops once 8 is not below 5; the bound of 10 trips does not matter, that of 2 does.
  EXPECT_EQ(elements(run_loop({.trips = {10}, .condition_depends = true}, 1, 2, 5)[0]), (Elements{8}));
  EXPECT_EQ(elements(run_loop({.trips = {2}, .condition_depends = true}, 1, 2, 5)[0]), (Elements{4}));
  EXPECT_EQ(elements(run_loop({.trips = {10}, .condition_depends = true}, 1, 2, 0)[0]), (Elements{2}));
}

TEST(Loop, ADerivativeGoesThroughIt) {
  graph::Graph imported = parse(loop_parts({.trips = {10}, .condition_depends = true})).import();
  op::Builder builder(imported);
  const op::Var y = builder.var(imported.outputs()[0].value), x = builder.var(imported.inputs()[0]),
                f = builder.var(imported.inputs()[1]);
  const std::vector<op::Var> wrt{x, f};
  const auto gradients = transform::gradient(builder, y, wrt);
  builder.output("dx", gradients[0]);
  builder.output("df", gradients[1]);
  // y = x f^3 at f = 2: dy/dx = 8, dy/df = 3 f^2 = 12.
  const auto results =
      op::evaluate(imported, std::vector<Tensor>{values({1}), values({2}), values({5})}).outputs;
  EXPECT_EQ(elements(results[1]), (Elements{8}));
  EXPECT_EQ(elements(results[2]), (Elements{12}));
}

TEST(Loop, Refusals) {
  EXPECT_TRUE(contains(loop_refusal({.trips = {10}, .condition_depends = true, .scan = true}),
                       "its scan outputs have no fixed size"));
  EXPECT_TRUE(
      contains(loop_refusal({.trips = {}, .condition_depends = true}), "no maximum of trips is known"));
  EXPECT_TRUE(contains(loop_refusal({.trips = {}}, {.most_nodes = 50}), "grows beyond 50 nodes"));
  EXPECT_TRUE(
      contains(loop_refusal({.trips = {0}, .scan = true}), "the shape of its scan outputs is not known"));
  GraphParts parts = loop_parts({});
  parts.initializers.clear();
  parts.inputs.push_back(port("M", i64, {}));
  EXPECT_TRUE(contains(error_of([&] { parse(parts).import(); }), "input M must be known at import"));
  parts.initializers = {testing::integers("M", {0}, {})};
  parts.inputs.pop_back();
  EXPECT_TRUE(contains(error_of([&] { parse(parts).import(); }), "input M must have one element"));
  parts.initializers.clear();
  parts.inputs.push_back(port("M", i64, {}));
  ImportOptions bound;
  bound.values["M"] = Tensor::scalar<std::int64_t>(2);
  EXPECT_EQ(parse(parts).import(bound).node_count(), 2u);
}

TEST(Loop, WithoutABodyOrWithTooFewOutputsIsRefused) {
  GraphParts parts = loop_parts({});
  parts.nodes = {node("Loop", {"M", "", "x"}, {"v_last"})};
  EXPECT_TRUE(contains(error_of([&] { parse(parts).import(); }), "attribute 'body' is missing"));
  const Message empty =
      graph({.nodes = {},
             .inputs = {port("i", i64, {}), port("c", boolean_type, {}), port("v", f32, {})},
             .outputs = {port("c", boolean_type, {})}});
  parts.nodes = {node("Loop", {"M", "", "x"}, {"v_last"}, {graph_attribute("body", empty)})};
  EXPECT_TRUE(contains(error_of([&] { parse(parts).import(); }), "gives fewer outputs"));
}

// state = state + x[t]; scans the state.
GraphParts scan_parts(std::vector<Message> attributes) {
  const Message body = graph({.nodes = {node("Add", {"s", "e"}, {"s2"}), node("Identity", {"s2"}, {"o"})},
                              .inputs = {port("s", f32, {}), port("e", f32, {})},
                              .outputs = {port("s2", f32, {}), port("o", f32, {})}});
  attributes.push_back(graph_attribute("body", body));
  attributes.push_back(attribute("num_scan_inputs", 1));
  return {.nodes = {node("Scan", {"s0", "x"}, {"last", "all"}, attributes)},
          .inputs = {port("s0", f32, {"1"}), port("x", f32, {"3", "1"})},
          .outputs = {port("last", f32, {}), port("all", f32, {})}};
}

TEST(Scan, ForwardsBackwardsAndAlongOtherAxes) {
  const auto scan = [](std::vector<Message> attributes) {
    return run(parse(scan_parts(std::move(attributes))), {values({0}), values({3, 1}, {1, 2, 3})});
  };
  const std::vector<std::int64_t> one{1};
  const auto forwards = scan({});
  EXPECT_EQ(elements(forwards[0]), (Elements{6}));
  EXPECT_EQ(elements(forwards[1]), (Elements{1, 3, 6}));
  EXPECT_EQ(forwards[1].shape(), (Shape{3, 1}));
  EXPECT_EQ(elements(scan({attribute("scan_input_directions", one)})[1]), (Elements{3, 5, 6}));
  EXPECT_EQ(elements(scan({attribute("scan_output_directions", one)})[1]), (Elements{6, 3, 1}));
  EXPECT_EQ(scan({attribute("scan_output_axes", one)})[1].shape(), (Shape{1, 3}));
}

TEST(Scan, Refusals) {
  const std::vector<std::int64_t> two{0, 0};
  EXPECT_TRUE(contains(error_of([&] { parse(scan_parts({attribute("scan_input_axes", two)})).import(); }),
                       "attribute 'scan_input_axes' has 2 entries, expected 1"));
  GraphParts parts = scan_parts({});
  parts.inputs[1] = port("x", f32, {"0", "1"});
  EXPECT_TRUE(contains(error_of([&] { parse(parts).import(); }), "scans nothing"));
}

}  // namespace
}  // namespace superstep::onnx
