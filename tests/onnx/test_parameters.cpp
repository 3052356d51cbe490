// Which initialisers are trained: weights, and what is asked for; and files that were exported for training.
#include "superstep/graph/verify.h"
#include "superstep/onnx/parameters.h"
#include "superstep/onnx/writer.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/product/matmul.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/transform/training/training_step.h"
#include "tests/expect_error.h"
#include "tests/onnx/support.h"

namespace superstep::onnx {
namespace {

using testing::attribute;
using testing::f32;
using testing::floats;
using testing::GraphParts;
using testing::integers;
using testing::Names;
using testing::node;
using testing::parse;
using testing::port;

Message numbered(const std::string& name, const std::vector<std::int64_t>& extents) {
  std::vector<float> values(static_cast<std::size_t>(Shape(extents).element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5F + 0.1F * static_cast<float>(i % 7);
  return floats(name, extents, values);
}

Names trained(const GraphParts& parts, TrainChoice choice = {}) {
  Names names;
  for (const Initializer& each :
       parse(parts).check({.parameters_as_state = true, .choice = std::move(choice)}).initializers)
    if (each.kind == Initializer::Kind::trained) names.push_back(each.name);
  std::ranges::sort(names);
  return names;
}

// x [2, 4, 6] through nodes to y.
GraphParts rows_of_six(std::vector<Message> nodes, std::vector<Message> initializers) {
  return {.nodes = std::move(nodes),
          .inputs = {port("x", f32, {"2", "4", "6"})},
          .outputs = {port("y", f32, {})},
          .initializers = std::move(initializers)};
}

TEST(Trained, WeightsOfProductsBehindWhatOnlyMovesThem) {
  const GraphParts parts = rows_of_six(
      {node("Transpose", {"w"}, {"turned"}, {attribute("perm", std::vector<std::int64_t>{1, 0})}),
       node("Identity", {"turned"}, {"same"}), node("MatMul", {"x", "same"}, {"product"}),
       node("Add", {"bias", "product"}, {"sum"}), node("Mul", {"sum", "factor"}, {"scaled"}),
       node("Add", {"scaled", "mask"}, {"y"})},
      {numbered("w", {5, 6}), numbered("bias", {5}), numbered("factor", {}), numbered("mask", {4, 5})});
  EXPECT_EQ(trained(parts), (Names{"bias", "w"}));
}

TEST(Trained, WeightsThatAreRoundedButNotTheirScales) {
  const auto rounded = [](const char* w, const char* q, const char* y) {
    return std::vector<Message>{node("QuantizeLinear", {w, "scale", "zero"}, {q}),
                                node("DequantizeLinear", {q, "scale", "zero"}, {y})};
  };
  std::vector<Message> nodes = rounded("w", "wq", "wr");
  for (Message& each : rounded("x", "xq", "xr")) nodes.push_back(std::move(each));
  nodes.push_back(node("MatMul", {"xr", "wr"}, {"y"}));
  const GraphParts parts =
      rows_of_six(std::move(nodes), {numbered("w", {6, 5}), floats("scale", {}, {0.1F}),
                                     testing::tensor("zero", 3, {}, std::string_view("\0", 1))});
  EXPECT_EQ(trained(parts), (Names{"w"}));
}

TEST(Trained, AVectorIsNoBiasWhereNoWeightIsBefore) {
  const GraphParts parts =
      rows_of_six({node("Sub", {"x", "mean"}, {"centred"}), node("Div", {"centred", "deviation"}, {"plain"}),
                   node("MatMul", {"plain", "w"}, {"product"}), node("Mul", {"product", "unit"}, {"scaled"}),
                   node("Add", {"scaled", "offset"}, {"y"})},
                  {numbered("mean", {6}), numbered("deviation", {6}), numbered("w", {6, 3}),
                   numbered("unit", {3}), numbered("offset", {3})});
  EXPECT_EQ(trained(parts), (Names{"w"})) << "what data are normalized by is no weight";
}

TEST(Trained, NormalisationsTakenApart) {
  const GraphParts parts =
      rows_of_six({node("Pow", {"x", "two"}, {"squares"}),
                   node("ReduceMean", {"squares"}, {"mean"},
                        {attribute("axes", std::vector<std::int64_t>{-1}), attribute("keepdims", 1)}),
                   node("Add", {"mean", "eps"}, {"more"}), node("Sqrt", {"more"}, {"root"}),
                   node("Reciprocal", {"root"}, {"one_over"}), node("Mul", {"x", "one_over"}, {"normal"}),
                   node("Mul", {"normal", "gain"}, {"scaled"}), node("Add", {"scaled", "shift"}, {"y"})},
                  {numbered("two", {}), numbered("eps", {}), numbered("gain", {6}), numbered("shift", {6})});
  EXPECT_EQ(trained(parts), (Names{"gain", "shift"}));
}

// As exporters write functions of PyTorch in operators: types are taken from the data at run time.
TEST(Trained, NormalisationsWhoseParametersTakeTheTypeOfTheData) {
  const GraphParts parts = rows_of_six(
      {node("Mul", {"x", "x"}, {"squares"}),
       node("ReduceMean", {"squares"}, {"mean"},
            {attribute("axes", std::vector<std::int64_t>{-1}), attribute("keepdims", 1)}),
       node("CastLike", {"eps", "mean"}, {"eps_like"}), node("Add", {"mean", "eps_like"}, {"more"}),
       node("Sqrt", {"more"}, {"root"}), node("Div", {"x", "root"}, {"divided"}),
       node("Shape", {"x"}, {"extents"}), node("Reshape", {"divided", "extents"}, {"normal"}),
       node("CastLike", {"gain", "normal"}, {"gain_like"}), node("Mul", {"normal", "gain_like"}, {"scaled"}),
       node("CastLike", {"shift", "scaled"}, {"shift_like"}), node("Add", {"scaled", "shift_like"}, {"y"})},
      {numbered("eps", {}), numbered("gain", {6}), numbered("shift", {6})});
  EXPECT_EQ(trained(parts), (Names{"gain", "shift"}));
}

TEST(Trained, FrequenciesAreNoWeightsButSirensAre) {
  const auto waves = [](bool both) {
    std::vector<Message> nodes{node("MatMul", {"x", "b"}, {"angle"}), node("Sin", {"angle"}, {"sine"})};
    if (both) nodes.push_back(node("Cos", {"angle"}, {"cosine"}));
    nodes.push_back(both ? node("Concat", {"sine", "cosine"}, {"wave"}, {attribute("axis", -1)})
                         : node("Identity", {"sine"}, {"wave"}));
    nodes.push_back(node("MatMul", {"wave", "w"}, {"y"}));
    return rows_of_six(nodes, {numbered("b", {6, 3}), numbered("w", {both ? 6 : 3, 2})});
  };
  EXPECT_EQ(trained(waves(true)), (Names{"w"}));
  EXPECT_EQ(trained(waves(false)), (Names{"b", "w"}));
}

TEST(Trained, TablesAndSlopesButNotSchedules) {
  const GraphParts parts{
      .nodes = {node("Gather", {"table", "ids"}, {"rows"}), node("Gather", {"schedule", "ids"}, {"when"}),
                node("PRelu", {"rows", "slope"}, {"bent"}), node("Unsqueeze", {"when", "last"}, {"column"}),
                node("Mul", {"bent", "column"}, {"y"})},
      .inputs = {port("ids", testing::i64, {"3"})},
      .outputs = {port("y", f32, {})},
      .initializers = {numbered("table", {9, 4}), numbered("schedule", {9}), numbered("slope", {1}),
                       integers("last", {1}, {1})}};
  EXPECT_EQ(trained(parts), (Names{"slope", "table"}));
}

TEST(Trained, PositionsThatAreAddedToEmbeddings) {
  const GraphParts parts{
      .nodes = {node("Gather", {"words", "ids"}, {"tokens"}), node("Add", {"tokens", "segment"}, {"both"}),
                node("Add", {"places", "both"}, {"sum"}), node("Add", {"sum", "shift"}, {"y"})},
      .inputs = {port("ids", testing::i64, {"2", "3"})},
      .outputs = {port("y", f32, {})},
      .initializers = {numbered("words", {9, 4}), numbered("segment", {1, 1, 4}), numbered("places", {3, 4}),
                       numbered("shift", {})}};
  EXPECT_EQ(trained(parts), (Names{"places", "segment", "words"}));
}

TEST(Trained, WhatIsNamedOrNotByPatterns) {
  const GraphParts parts =
      rows_of_six({node("MatMul", {"x", "layer.w"}, {"product"}),
                   node("Mul", {"product", "gain"}, {"scaled"}), node("MatMul", {"scaled", "head.w"}, {"y"})},
                  {numbered("layer.w", {6, 4}), numbered("gain", {4}), numbered("head.w", {4, 2})});
  EXPECT_EQ(trained(parts), (Names{"head.w", "layer.w"}));
  EXPECT_EQ(trained(parts, {.train = {"ga?n"}, .freeze = {}}), (Names{"gain", "head.w", "layer.w"}));
  EXPECT_EQ(trained(parts, {.train = {}, .freeze = {"layer.*"}}), (Names{"head.w"}));
  EXPECT_EQ(trained(parts, {.train = {"*"}, .freeze = {"*.w"}}), (Names{"gain"}));
  expect_error(
      ErrorCode::invalid_argument,
      {"no floating initializer of the model is called so", "--train gian", "did you mean 'gain'"}, [&] {
        parse(parts).import({.parameters_as_state = true, .choice = {.train = {"gian"}, .freeze = {}}});
      });
}

// A factor that is learnt looks like any other: our own files say what is trained, and what is not.
TEST(Trained, WhatTheFileSaysOfItself) {
  graph::Graph model("scaled");
  op::Builder b(model);
  const op::Var x = b.input("x", ElementType::f32, {2, 6});
  const auto state = [&](const char* name, std::vector<std::int64_t> extents) {
    return b.state(name, Tensor::full(ElementType::f32, Shape(std::move(extents)), 0.5));
  };
  const op::Var kept = state("counted/shift", {3});
  b.output("y", op::matmul(x * state("factor", {1}), state("w", {6, 3})) + kept);
  const auto trained_of = [](const std::string& bytes, TrainChoice choice = {}) {
    Names names;
    for (const Initializer& each :
         parse(bytes).check({.parameters_as_state = true, .choice = std::move(choice)}).initializers)
      if (each.kind == Initializer::Kind::trained) names.push_back(each.name);
    std::ranges::sort(names);
    return names;
  };
  const std::string bytes = to_onnx([&](std::int64_t) { return model; }, {.fixed_batch = 2});
  EXPECT_EQ(trained_of(bytes), (Names{"factor", "w"})) << "a shift that is counted looks like a bias";
  EXPECT_EQ(trained_of(bytes, {.train = {"*shift"}, .freeze = {"w"}}), (Names{"counted/shift", "factor"}));
}

TEST(Trained, TheListIsAShortOne) {
  std::vector<Initializer> all{{"w", 1200, Initializer::Kind::trained},
                               {"mean", 3, Initializer::Kind::statistics}};
  EXPECT_EQ(to_string(all), "trained: 1 of 2 initializers, 1,200 values; kept up to date: 1 statistics");
  for (const char* name : {"eps", "mask", "two"}) all.push_back({name, 1, Initializer::Kind::kept});
  EXPECT_EQ(
      to_string(all, 2),
      "trained: 1 of 5 initializers, 1,200 values; kept up to date: 1 statistics; not: eps, mask and 1 more");
}

// Scales of a Resize are read by a shape: as state they could not be.
TEST(Trained, ScalesOfAResizingStayConstant) {
  const GraphParts parts{
      .nodes = {node("Conv", {"x", "w"}, {"features"}),
                node("Resize", {"features", "", "scales"}, {"y"}, {attribute("mode", "nearest")})},
      .inputs = {port("x", f32, {"N", "1", "4", "4"})},
      .outputs = {port("y", f32, {})},
      .initializers = {numbered("w", {2, 1, 1, 1}), floats("scales", {4}, {1, 1, 2, 2})}};
  const graph::Graph graph = parse(parts).import({.parameters_as_state = true});
  ASSERT_EQ(graph.states().size(), 1U);
  EXPECT_EQ(graph.value(graph.states()[0]).name, "w");
  EXPECT_EQ(graph.type(graph.outputs()[0].value).shape, (Shape{1, 2, 8, 8}));
}

GraphParts exported_for_training() {
  return {.nodes = {node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"n", "mean2", "var2"},
                         {attribute("training_mode", 1), attribute("epsilon", 0.0f)}),
                    node("Dropout", {"n", "ratio", "training"}, {"y", "mask"})},
          .inputs = {port("x", f32, {"N", "2"})},
          .outputs = {port("y", f32, {})},
          .initializers = {floats("scale", {2}, {1, 1}), floats("bias", {2}, {0, 0}),
                           floats("mean", {2}, {1, 2}), floats("var", {2}, {4, 4}),
                           floats("ratio", {}, {0.5}), testing::boolean("training", true)}};
}

TEST(ServingForm, TakesRunningStatisticsAndDropsNothing) {
  const Tensor x = testing::values({2, 2}, {1, 2, 5, 6});
  const auto served = testing::run(parse(exported_for_training()), {x}, {.parameters_as_state = true});
  EXPECT_EQ(testing::elements(served[0]), (std::vector<double>{0, 0, 2, 2}));
}

TEST(ServingForm, TrainsWithStatisticsOfTheBatchAndMasks) {
  const graph::Graph model =
      parse(exported_for_training()).import({.shapes = {{"x", {8, 2}}}, .parameters_as_state = true});
  const graph::Graph step = transform::make_training_step(model, {.terms = {{.output = "y"}}}, {});
  EXPECT_TRUE(graph::verify(step, op::infer_types));
  std::set<std::string> updated;
  for (const graph::Update& update : step.updates()) updated.insert(step.value(update.state).name);
  for (const char* name : {"scale", "bias", "mean", "var"}) EXPECT_TRUE(updated.contains(name)) << name;
  EXPECT_TRUE(updated.contains(transform::dropout_counter)) << "masks are drawn anew";
}

}  // namespace
}  // namespace superstep::onnx
