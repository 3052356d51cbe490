// Whole files to graphs: names, extents, parameters, order, functions, and everything that is refused.
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/transform/training/training_step.h"
#include "tests/onnx/support.h"

namespace superstep::onnx {
namespace {

using testing::attribute;
using testing::contains;
using testing::elements;
using testing::error_of;
using testing::f32;
using testing::graph;
using testing::GraphParts;
using testing::i64;
using testing::model_bytes;
using testing::node;
using testing::parse;
using testing::port;
using testing::run;
using testing::values;

GraphParts dense_parts() {
  return {.nodes = {node("MatMul", {"x", "w"}, {"hidden"}), node("Add", {"hidden", "b"}, {"y"})},
          .inputs = {port("x", f32, {"batch", "2"})},
          .outputs = {port("y", f32, {"batch", "2"})},
          .initializers = {testing::floats("w", {2, 2}, {1, 2, 3, 4}), testing::floats("b", {2}, {10, 20})}};
}

std::string refusal(const GraphParts& parts, const ImportOptions& options = {}) {
  return error_of([&] { parse(parts).import(options); });
}

TEST(Import, KeepsNamesAndIsVerified) {
  const graph::Graph imported = parse(dense_parts()).import();
  EXPECT_TRUE(graph::verify(imported, op::infer_types));
  EXPECT_EQ(imported.name(), "test");
  for (const char* name : {"x", "w", "b", "hidden", "y"})
    EXPECT_TRUE(imported.find_value(name).valid()) << name;
  EXPECT_EQ(imported.outputs()[0].name, "y");
  EXPECT_EQ(imported.nodes()[0].name, "the_MatMul");
}

TEST(Import, ComputesWhatTheFileSays) {
  EXPECT_EQ(elements(run(parse(dense_parts()), {values({1, 2}, {1, 1})})[0]), (std::vector<double>{14, 26}));
}

TEST(Import, ExtentsByShapeSymbolAndDefault) {
  const Model model = parse(dense_parts());
  const auto batch = [&](const ImportOptions& options) {
    return model.import(options).type(model.import(options).inputs()[0]).shape[0];
  };
  EXPECT_EQ(batch({}), 1);
  EXPECT_EQ(batch({.default_extent = 5}), 5);
  EXPECT_EQ(batch({.symbols = {{"batch", 3}}}), 3);
  EXPECT_EQ(batch({.shapes = {{"x", {4, -1}}}, .symbols = {{"batch", 3}}}), 4);
}

TEST(Import, RefusesExtentsThatDoNotFit) {
  const GraphParts parts = dense_parts();
  EXPECT_TRUE(contains(refusal(parts, {.shapes = {{"x", {4, 3}}}}),
                       "input 'x': is f32[batch,2], and is given extent 3 for axis 1"));
  EXPECT_TRUE(contains(refusal(parts, {.shapes = {{"x", {4}}}}), "is given 1 extents"));
  EXPECT_TRUE(contains(refusal(parts, {.shapes = {{"z", {4}}}}), "the model has no such input"));
  EXPECT_TRUE(contains(refusal(parts, {.values = {{"x", values({1, 2})}}}), "is given 1 extents"));
}

TEST(Import, ParametersAsStateCanBeTrained) {
  GraphParts parts = dense_parts();
  parts.initializers.push_back(testing::floats("unread", {2}, {0, 0}));
  const graph::Graph constant = parse(parts).import();
  const graph::Graph trainable = parse(parts).import({.parameters_as_state = true});
  EXPECT_TRUE(constant.states().empty());
  ASSERT_EQ(trainable.states().size(), 2u);
  EXPECT_EQ(trainable.value(trainable.states()[0]).name, "w");
  const graph::Graph step = transform::make_training_step(trainable, {}, {});
  EXPECT_TRUE(graph::verify(step, op::infer_types));
  EXPECT_GE(step.updates().size(), 2u);
}

// They are states, which training keeps up to date, and have no gradient.
TEST(Import, StatisticsOfANormalizationAreNoParameters) {
  const auto four = [](const std::string& name) { return testing::floats(name, {1}, {2}); };
  const GraphParts parts{.nodes = {node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"y"})},
                         .inputs = {port("x", f32, {"2", "1"})},
                         .outputs = {port("y", f32, {})},
                         .initializers = {four("scale"), four("bias"), four("mean"), four("var")}};
  const graph::Graph trainable = parse(parts).import({.parameters_as_state = true});
  EXPECT_EQ(trainable.states().size(), 4u);
  EXPECT_EQ(trainable.value(trainable.find_value("mean")).kind, graph::ValueKind::state);
  const auto trained = transform::trainable_states(trainable);
  ASSERT_EQ(trained.size(), 2u);
  EXPECT_EQ(trainable.value(trained[0]).name, "scale");
  EXPECT_EQ(trainable.value(trained[1]).name, "bias");
}

TEST(Import, NodesOutOfOrderAreSorted) {
  GraphParts parts = dense_parts();
  std::swap(parts.nodes[0], parts.nodes[1]);
  EXPECT_EQ(elements(run(parse(parts), {values({1, 2}, {1, 1})})[0]), (std::vector<double>{14, 26}));
}

TEST(Import, ShapesOfShapesAreComputed) {
  // Flattens all but the first axis the long way round.
  const GraphParts parts{
      .nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}, {attribute("axis", 0)}),
                node("Unsqueeze", {"n", "axis0"}, {"n1"}),
                node("Concat", {"n1", "rest"}, {"t"}, {attribute("axis", 0)}),
                node("Reshape", {"x", "t"}, {"y"})},
      .inputs = {port("x", f32, {"batch", "2", "3"})},
      .outputs = {port("y", f32, {})},
      .initializers = {testing::integers("zero", {}, {0}), testing::integers("axis0", {1}, {0}),
                       testing::integers("rest", {1}, {-1})}};
  const graph::Graph imported = parse(parts).import({.symbols = {{"batch", 5}}});
  EXPECT_EQ(imported.type(imported.outputs()[0].value).shape, (Shape{5, 6}));
  EXPECT_EQ(imported.node_count(), 1u);  // what only shapes needed is gone
}

GraphParts shape_input_parts() {
  return {.nodes = {node("Add", {"s", "s"}, {"twice"}), node("Reshape", {"x", "twice"}, {"y"})},
          .inputs = {port("x", f32, {"2", "6"}), port("s", i64, {"2"})},
          .outputs = {port("y", f32, {})}};
}

TEST(Import, InputsThatShapesDependOnAreBoundByValue) {
  ImportOptions options;
  options.values["s"] = Tensor::from<std::int64_t>({2}, {1, 3});
  const graph::Graph imported = parse(shape_input_parts()).import(options);
  EXPECT_EQ(imported.inputs().size(), 2u);  // both stay inputs
  EXPECT_EQ(imported.type(imported.outputs()[0].value).shape, (Shape{2, 6}));
}

TEST(Import, ShapesThatDependOnUnknownInputsAreRefused) {
  EXPECT_TRUE(contains(refusal(shape_input_parts()), "must be known when the graph is compiled"));
}

TEST(Import, TellsEverythingThatIsInTheWayAtOnce) {
  const GraphParts parts{
      .nodes = {node("Relu", {"x"}, {"a"}), node("Reluu", {"a"}, {"b"}), node("Exp", {"b"}, {"c"}),
                node("StringNormalizer", {"words"}, {"d"}), node("Foo", {"c"}, {"e"}, {}, "com.example"),
                node("Conv", {"x", "x"}, {"y"})},
      .inputs = {port("x", f32, {"2"}), port("words", testing::string, {"2"})},
      .outputs = {port("y", f32, {}), port("e", f32, {})}};
  const Findings findings = parse(parts).check();
  std::string all;
  for (const Finding& finding : findings.unsupported) all += to_string(finding) + "\n";
  EXPECT_TRUE(contains(all, "input 'words': is of type string, which has no place in a graph"));
  EXPECT_TRUE(contains(
      all, "node 'the_Reluu' (Reluu, operator set 17): there is no such operator here (there is 'Relu')"));
  EXPECT_TRUE(
      contains(all, "node 'the_StringNormalizer' (StringNormalizer, operator set 17): works on strings"));
  EXPECT_TRUE(contains(all, "(com.example.Foo, operator set 1): domain 'com.example' is not known"));
  EXPECT_TRUE(contains(all, "node 'the_Conv'"));
  EXPECT_EQ(findings.unsupported.size(), 5u) << all;  // what follows from another failure is not told
  const std::string text = refusal(parts);
  EXPECT_TRUE(contains(text, "test.onnx: cannot be imported"));
  EXPECT_TRUE(contains(text, "Foo"));
}

TEST(Import, CountsWhatTheFileHolds) {
  const Findings findings = parse(dense_parts()).check({.symbols = {{"batch", 10}}});
  EXPECT_TRUE(findings.importable());
  EXPECT_EQ(findings.parameters, 6);
  EXPECT_EQ(findings.parameter_bytes, 24);
  EXPECT_EQ(findings.nodes, 2);
  EXPECT_EQ(findings.flops, 10 * 2 * 2 * 2 + 10 * 2);
  ASSERT_EQ(findings.operators.size(), 2u);
}

TEST(Import, CountsParametersOfWhatItCannotImport) {
  GraphParts parts = dense_parts();
  parts.nodes[0] = node("MatMull", {"x", "w"}, {"hidden"});
  parts.initializers.push_back(testing::floats("unread", {2}, {0, 0}));
  const Findings findings = parse(parts).check();
  EXPECT_FALSE(findings.importable());
  EXPECT_EQ(findings.parameters, 6);
}

TEST(Import, RefusesNamesThatNothingGives) {
  GraphParts parts = dense_parts();
  parts.nodes[1] = node("Add", {"hidden", "absent"}, {"y"});
  EXPECT_TRUE(contains(refusal(parts), "reads 'absent', which nothing gives"));
  parts = dense_parts();
  parts.outputs = {port("absent", f32, {})};
  EXPECT_TRUE(contains(refusal(parts), "output 'absent'"));
  parts.outputs = {};
  EXPECT_TRUE(contains(refusal(parts), "has no outputs"));
}

TEST(Import, RefusesCycles) {
  GraphParts parts = dense_parts();
  parts.nodes = {node("Add", {"x", "b2"}, {"a2"}), node("Add", {"a2", "x"}, {"b2"}),
                 node("Relu", {"b2"}, {"y"})};
  EXPECT_TRUE(contains(refusal(parts), "which nothing gives"));
}

TEST(Import, DamageInsideANodeIsAFinding) {
  GraphParts parts = dense_parts();
  parts.initializers[0] = testing::tensor("w", 1, {2, 2}, "too short");
  EXPECT_TRUE(contains(refusal(parts), "tensor 'w': f32[2,2] needs 16 bytes, the file has 9"));
}

// --- functions

// Scaled(x) {factor} = x * factor, once more inside itself as Twice.
Message scaled_function() {
  Message message;
  message.text(1, "Scaled").text(4, "v").text(5, "r").text(6, "factor");
  message.message(7, node("Constant", {}, {"k"}, {testing::attribute_reference("value_float", "factor", 1)}));
  message.message(7, node("Mul", {"v", "k"}, {"r"}));
  return message.message(9, testing::opset_import(17)).text(10, "my.domain");
}
Message twice_function() {
  Message message;
  message.text(1, "Twice").text(4, "v").text(5, "r");
  message.message(7, node("Scaled", {"v"}, {"r"}, {attribute("factor", 2.0f)}, "my.domain"));
  return message.message(9, testing::opset_import(17))
      .message(9, testing::opset_import(1, "my.domain"))
      .text(10, "my.domain");
}

GraphParts calls(const std::string& function, std::vector<Message> attributes = {}) {
  return {.nodes = {node(function, {"x"}, {"y"}, std::move(attributes), "my.domain")},
          .inputs = {port("x", f32, {"2"})},
          .outputs = {port("y", f32, {"2"})}};
}

TEST(Functions, AreReplacedByTheirNodes) {
  const Model model = parse(model_bytes(graph(calls("Scaled", {attribute("factor", 3.0f)})), 17,
                                        {scaled_function(), twice_function()}, {"my.domain"}));
  EXPECT_EQ(elements(run(model, {values({1, 2})})[0]), (std::vector<double>{3, 6}));
  const Model nested =
      parse(model_bytes(graph(calls("Twice")), 17, {scaled_function(), twice_function()}, {"my.domain"}));
  EXPECT_EQ(elements(run(nested, {values({1, 2})})[0]), (std::vector<double>{2, 4}));
}

TEST(Functions, ThatCallThemselvesAreRefused) {
  Message endless;
  endless.text(1, "Endless").text(4, "v").text(5, "r");
  endless.message(7, node("Endless", {"v"}, {"w"}, {}, "my.domain"));
  endless.message(7, node("Endless", {"w"}, {"r"}, {}, "my.domain"));
  endless.message(9, testing::opset_import(1, "my.domain")).text(10, "my.domain");
  const Model model = parse(model_bytes(graph(calls("Endless")), 17, {endless}, {"my.domain"}));
  const std::string error = error_of([&] { model.import({.most_nodes = 1000}); });
  EXPECT_TRUE(contains(error, "nested deeper than 64"));
}

TEST(Functions, ExponentiallyManyCallsAreRefused) {
  std::vector<Message> functions;
  for (int level = 0; level < 40; ++level) {
    const std::string name = "F" + std::to_string(level), next = "F" + std::to_string(level + 1);
    Message function;
    function.text(1, name).text(4, "v").text(5, "r");
    for (const auto& [from, to] : {std::pair("v", "w"), std::pair("w", "r")})
      function.message(
          7, level < 39 ? node(next, {from}, {to}, {}, "my.domain") : node("Identity", {from}, {to}));
    functions.push_back(function.message(9, testing::opset_import(17))
                            .message(9, testing::opset_import(1, "my.domain"))
                            .text(10, "my.domain"));
  }
  const Model model = parse(model_bytes(graph(calls("F0")), 17, functions, {"my.domain"}));
  EXPECT_TRUE(
      contains(error_of([&] { model.import({.most_nodes = 1000}); }), "more steps than an import may"));
}

// --- sequences inside a model

TEST(Sequences, InsideAModelAreTakenApart) {
  const GraphParts parts{
      .nodes = {node("SplitToSequence", {"x"}, {"parts"}, {attribute("axis", 0)}),
                node("SequenceAt", {"parts", "last"}, {"a"}),
                node("SequenceInsert", {"parts", "a", "first"}, {"more"}),
                node("SequenceErase", {"more", "last"}, {"fewer"}),
                node("SequenceLength", {"fewer"}, {"count"}),
                node("ConcatFromSequence", {"fewer"}, {"y"}, {attribute("axis", 0)})},
      .inputs = {port("x", f32, {"3"})},
      .outputs = {port("y", f32, {}), port("count", i64, {})},
      .initializers = {testing::integers("last", {}, {-1}), testing::integers("first", {}, {0})}};
  const std::vector<Tensor> results = run(parse(parts), {values({1, 2, 3})});
  EXPECT_EQ(elements(results[0]), (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(results[1].at(0), 3);
}

TEST(Sequences, DoNotReachOrdinaryOperatorsOrOutputs) {
  GraphParts parts{.nodes = {node("SequenceConstruct", {"x"}, {"s"}), node("Relu", {"s"}, {"y"})},
                   .inputs = {port("x", f32, {"3"})},
                   .outputs = {port("y", f32, {})}};
  EXPECT_TRUE(contains(refusal(parts), "reads a sequence, and works on tensors alone"));
  parts.nodes[1] = node("Identity", {"s"}, {"y"});
  EXPECT_TRUE(contains(refusal(parts), "output 'y': reads a sequence"));
  parts.nodes[1] = node("SequenceAt", {"s", "at"}, {"y"});
  parts.initializers = {testing::integers("at", {}, {1})};
  EXPECT_TRUE(contains(refusal(parts), "position 1 is outside the sequence"));
  parts.nodes[1] = node("SequenceAt", {"x", "at"}, {"y"});
  EXPECT_TRUE(contains(refusal(parts), "input 0 is not a sequence"));
}

}  // namespace
}  // namespace superstep::onnx
