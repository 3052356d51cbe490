// The operator of docs/add-an-operator.md, through all that reads its record: it is not in the table, but
// added for the length of a test.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/graph/verify.h"
#include "superstep/machine/work.h"
#include "superstep/onnx/model.h"
#include "superstep/onnx/writer.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/element_types.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/core/gradient_check.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/elementwise_traits.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/target.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/fuse_elementwise.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::op {
namespace {

// [add-an-operator]
std::vector<ValueType> infer_squared_difference(const InferContext& context) {
  require_floating(context, 0, "a");
  require_same_element(context, 1, "b", 0, "a");
  require_shape(context, 1, "b", context.input(0).shape);
  return {context.input(0)};
}

void evaluate_squared_difference(const EvaluateContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    const double difference = a.at(i) - b.at(i);
    context.output(0).set(i, difference * difference);
  }
}

Var slope_by_a(const DerivativeContext& context) { return (context.inputs[0] - context.inputs[1]) * 2.0; }

std::vector<Var> squared_difference_vjp(const DerivativeContext& context, std::span<const Var> cotangents,
                                        const std::vector<bool>& wanted) {
  std::vector<Var> result = no_cotangents(context);
  const Var by_a = cotangents[0] * slope_by_a(context);
  if (wanted[0]) result[0] = by_a;
  if (wanted[1]) result[1] = -by_a;
  return result;
}

// An invalid tangent is zero: that input does not change.
std::vector<Var> squared_difference_jvp(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var change = sum_valid(tangents[0], tangents[1].valid() ? -tangents[1] : Var());
  return {slope_by_a(context) * change};
}

std::vector<Var> decompose_squared_difference(const DerivativeContext& context) {
  const Var difference = context.inputs[0] - context.inputs[1];
  return {difference * difference};
}

double flops_of_squared_difference(const Attributes&, std::span<const ValueType>,
                                   std::span<const ValueType> outputs) {
  return 2.0 * static_cast<double>(outputs[0].shape.element_count());
}

constexpr Definition squared_difference_definition{.name = "superstep.SquaredDifference",
                                                   .since_opset = 0,
                                                   .min_inputs = 2,
                                                   .max_inputs = 2,
                                                   .traits = elementwise_traits(Elements::floating),
                                                   .infer = infer_squared_difference,
                                                   .flops = flops_of_squared_difference,
                                                   .evaluate = evaluate_squared_difference,
                                                   .vjp = squared_difference_vjp,
                                                   .jvp = squared_difference_jvp,
                                                   .decompose = decompose_squared_difference};

// (a - b)^2, element by element; a and b of one floating type and one shape.
Var squared_difference(Var a, Var b) { return a.builder().node1("superstep.SquaredDifference", {a, b}); }
// [end]

const Attributes no_attributes;
const Definition& definition = squared_difference_definition;

Tensor f64(const std::vector<double>& values) {
  return Tensor::from(Shape{static_cast<std::int64_t>(values.size())}, values);
}

ValueType type_of(const Tensor& tensor) { return {tensor.type(), tensor.shape()}; }

std::vector<ValueType> inferred(const Tensor& a, const Tensor& b) {
  const ValueType types[] = {type_of(a), type_of(b)};
  return definition.infer({no_attributes, {&types[0], &types[1]}, {nullptr, nullptr}, 1});
}

Tensor evaluated(const Tensor& a, const Tensor& b) {
  Tensor result(a.type(), a.shape());
  definition.evaluate({no_attributes, {&a, &b}, {&result}});
  return result;
}

// Builds a graph of two inputs, gives it to `build`, and runs what that returns.
template <class Build>
std::vector<Tensor> run(const Tensor& a, const Tensor& b, const Build& build) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("a", a.type(), a.shape()), y = builder.input("b", b.type(), b.shape());
  DerivativeContext context{builder, no_attributes, {x, y}, {}};
  context.outputs = definition.decompose(context);
  for (const Var result : build(context)) builder.output("result", result);
  return superstep::op::evaluate(graph, std::vector{a, b}).outputs;
}

const Tensor a = f64({0.5, -1.25, 3.0}), b = f64({2.0, -1.0, 0.75});
const Tensor da = f64({1.0, -2.0, 0.5}), db = f64({0.25, 1.5, -1.0});
const Tensor cotangent = f64({0.5, 2.0, -3.0});

Tensor moved(const Tensor& x, const Tensor& direction, double step) {
  Tensor result = x.clone();
  for (std::int64_t i = 0; i < x.element_count(); ++i) result.set(i, x.at(i) + step * direction.at(i));
  return result;
}

// The change of the outputs along (da, db), by central differences of the evaluation.
std::vector<double> differences() {
  const double step = 1e-5;
  const Tensor up = evaluated(moved(a, da, step), moved(b, db, step));
  const Tensor down = evaluated(moved(a, da, -step), moved(b, db, -step));
  std::vector<double> result;
  for (std::int64_t i = 0; i < up.element_count(); ++i) result.push_back((up.at(i) - down.at(i)) / 2 / step);
  return result;
}

bool close(double value, double expected) {
  return std::abs(value - expected) <= 1e-6 * std::max(1.0, std::abs(expected));
}

// w . J v as the differences have it, and v . J'w as the reverse rule has it, times `error`.
bool reverse_rule_agrees(double error) {
  const std::vector<Tensor> gradients = run(a, b, [](const DerivativeContext& context) {
    return definition.vjp(context, std::vector{context.builder.constant(cotangent)}, {true, true});
  });
  double forward = 0, reverse = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    forward += cotangent.at(i) * differences()[static_cast<std::size_t>(i)];
    reverse += error * (gradients[0].at(i) * da.at(i) + gradients[1].at(i) * db.at(i));
  }
  return close(reverse, forward);
}

TEST(AddAnOperator, ShapeRuleTakesAndRefuses) {
  EXPECT_EQ(inferred(a, b), std::vector{type_of(a)});
  try {
    inferred(a, f64({1, 2}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_graph);
    EXPECT_TRUE(contains(error.what(), "b"));
    EXPECT_TRUE(contains(error.what(), "[3]"));
  }
  EXPECT_THROW(inferred(a, b.converted(ElementType::f32)), Error);
}

TEST(AddAnOperator, EvaluatesAndDecomposesToTheSame) {
  const Tensor direct = evaluated(a, b);
  const Tensor parts = run(a, b, [](const DerivativeContext& context) { return context.outputs; })[0];
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(direct.at(i), parts.at(i));
  EXPECT_EQ(direct.at(0), 2.25);
  const std::vector types{type_of(direct)};
  EXPECT_EQ(definition.flops(no_attributes, types, types), 6);
}

TEST(AddAnOperator, ForwardRuleAgreesWithDifferences) {
  const Tensor change = run(a, b, [](const DerivativeContext& context) {
    return definition.jvp(context, std::vector{context.builder.constant(da), context.builder.constant(db)});
  })[0];
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(close(change.at(i), differences()[static_cast<std::size_t>(i)]));
}

TEST(AddAnOperator, ForwardRuleTakesAMissingTangentAsZero) {
  const Tensor change = run(a, b, [](const DerivativeContext& context) {
    return definition.jvp(context, std::vector{Var(), context.builder.constant(db)});
  })[0];
  EXPECT_EQ(change.at(0), 2 * (0.5 - 2.0) * -0.25);
}

TEST(AddAnOperator, ReverseRuleIsTheTranspose) {
  EXPECT_TRUE(reverse_rule_agrees(1));
  EXPECT_FALSE(reverse_rule_agrees(1.001));  // the negative control
}

TEST(AddAnOperator, NeedsItsLineInTheTable) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f32, {2});
  EXPECT_THROW(squared_difference(x, x), Error);
}

// ---- as if it were in the table

// The sum over each row of [batch, 3] of the squared differences of two inputs.
graph::Graph model_of(std::int64_t batch, ElementType element = ElementType::f32) {
  graph::Graph graph("distance");
  Builder builder(graph);
  const Var x = builder.input("a", element, {batch, 3}), y = builder.input("b", element, {batch, 3});
  builder.output("distance", reduce_sum(squared_difference(x, y), {1}));
  return graph;
}

std::vector<Tensor> batch_of(std::int64_t batch) {
  std::vector<Tensor> inputs(2, Tensor(ElementType::f32, {batch, 3}));
  for (std::int64_t i = 0; i < 3 * batch; ++i) {
    inputs[0].set(i, std::sin(static_cast<double>(i)));
    inputs[1].set(i, std::cos(static_cast<double>(3 * i)));
  }
  return inputs;
}

struct Ran {
  Tensor distance;
  std::vector<target::PlanStep> steps;
};

Ran run_on(const char* target, std::int64_t batch, std::int64_t micro_batch) {
  const auto plan = target::find_target(target).compile([](std::int64_t size) { return model_of(size); },
                                                        {.batch = batch, .micro_batch = micro_batch});
  std::vector<Tensor> outputs(1, Tensor(ElementType::f32, {batch}));
  plan->run(batch_of(batch), outputs);
  return {std::move(outputs[0]), plan->summary().steps};
}

bool same_bytes(const Tensor& x, const Tensor& y) {
  return x.byte_count() == y.byte_count() && std::memcmp(x.bytes(), y.bytes(), x.byte_count()) == 0;
}

TEST(AddAnOperator, StatesItsFacts) {
  EXPECT_EQ(missing_facts(definition), std::vector<std::string>());
  Definition without = definition;
  without.traits = {};
  const std::vector<std::string> missing = missing_facts(without);
  ASSERT_EQ(missing.size(), 2U);
  EXPECT_TRUE(contains(missing[0], "traits.elements"));
  EXPECT_TRUE(contains(missing[1], "traits.work"));
  EXPECT_THROW(AddedOperator{without}, Error);
  EXPECT_EQ(element_types(definition.traits.elements)->name, "floating");
}

TEST(AddAnOperator, DerivativesOfBothModesAndOrdersAgreeWithDifferences) {
  const AddedOperator added(definition);
  const Function function = [](Builder&, std::span<const Var> x) {
    return std::vector{squared_difference(x[0], x[1])};
  };
  const std::vector<Tensor> inputs{a, b};
  const Status status = check_gradients(function, inputs, {.second_order = true});
  EXPECT_TRUE(status) << status.error().what();
}

TEST(AddAnOperator, RunsOnTheReferenceAndByItsDefinitionOnTheCpu) {
  const AddedOperator added(definition);
  const Ran reference = run_on("reference", 4, 4), cpu = run_on("cpu", 4, 4);
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(cpu.distance.at(i), reference.distance.at(i), 1e-6 * reference.distance.at(i));
  const auto step = std::ranges::find(cpu.steps, definition.name, &target::PlanStep::op);
  ASSERT_NE(step, cpu.steps.end());
  EXPECT_EQ(step->kernel, "reference evaluation");
}

TEST(AddAnOperator, KeepsTheSamplesOfABatchApart) {
  const AddedOperator added(definition);
  const graph::Graph graph = model_of(4);
  EXPECT_TRUE(transform::splittable(graph));
  const auto found = transform::find_batch_axes(graph);
  EXPECT_EQ(found[graph.nodes()[0].outputs[0].index()], along(0));
  EXPECT_TRUE(same_bytes(run_on("cpu", 4, 4).distance, run_on("cpu", 4, 2).distance));
}

TEST(AddAnOperator, HasACostAndIsFusedWithItsLike) {
  const AddedOperator added(definition);
  graph::Graph graph("model");
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f32, {4, 3}),
            y = builder.input("y", ElementType::f32, {4, 3});
  builder.output("z", sqrt(squared_difference(x, y)));
  const auto works = machine::works_of(graph, machine::precision_from_name("f32"));
  ASSERT_EQ(works.size(), 1U);
  EXPECT_EQ(works[0].kind, WorkKind::elementwise);
  EXPECT_EQ(works[0].flops, 2 * 12 + 12);
  EXPECT_EQ(transform::fuse_elementwise(graph).groups.size(), 1U);
}

TEST(AddAnOperator, IsWrittenInOperatorsOfOnnx) {
  const AddedOperator added(definition);
  const ScratchFolder folder;
  onnx::write_onnx(folder / "distance.onnx", [](std::int64_t batch) { return model_of(batch); },
                   {.fixed_batch = 4});
  const graph::Graph read = onnx::Model::open(folder / "distance.onnx").import();
  for (const graph::Node& node : read.nodes()) EXPECT_NE(node.op, definition.name);
  const Tensor expected = superstep::op::evaluate(model_of(4), batch_of(4)).outputs[0];
  const Tensor found = superstep::op::evaluate(read, batch_of(4)).outputs[0];
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_NEAR(found.at(i), expected.at(i), 1e-6 * expected.at(i));
}

// As if it were ONNX's own, with an attribute: read under its name, and refused with an attribute it never
// had.
TEST(AddAnOperator, AnOperatorOfOnnxIsReadByItsNameAndAttributes) {
  Definition of_onnx = definition;
  of_onnx.name = "SquaredDifference";
  of_onnx.since_opset = 13;
  of_onnx.traits.attributes = "scale";
  const AddedOperator added(of_onnx);
  const ScratchFolder folder;
  const auto write = [&](const char* attribute) {
    onnx::write_onnx(folder / "model.onnx",
                     [&](std::int64_t batch) {
                       graph::Graph graph("model");
                       Builder builder(graph);
                       const Var x = builder.input("x", ElementType::f32, {batch, 2});
                       builder.output("y", builder.node1("SquaredDifference", {x, x}, {{attribute, 2.0}}));
                       return graph;
                     },
                     {.fixed_batch = 1});
    return onnx::Model::open(folder / "model.onnx");
  };
  const graph::Graph read = write("scale").import();
  ASSERT_EQ(read.node_count(), 1U);
  EXPECT_EQ(read.nodes()[0].op, "SquaredDifference");
  try {
    write("scales").import();
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "has an attribute 'scales'")) << error.what();
    EXPECT_TRUE(contains(error.what(), "did you mean 'scale'?")) << error.what();
  }
}

}  // namespace
}  // namespace superstep::op
