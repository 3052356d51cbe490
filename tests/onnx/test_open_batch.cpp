// Files that leave the batch open though constants of the graph follow it, and operator sets that nodes need.
#include "superstep/onnx/open_batch.h"
#include "superstep/onnx/operator_sets.h"
#include "superstep/onnx/writer.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/view.h"
#include "tests/onnx/support.h"
#include "tests/target/models.h"

namespace superstep::onnx {
namespace {

using op::Builder;
using op::Var;

using AtBatch = std::function<graph::Graph(std::int64_t)>;

template <class Body>
AtBatch model_of(Body body) {
  return [body](std::int64_t batch) {
    graph::Graph graph("open");
    Builder b(graph);
    b.output("y", body(b, b.input("x", ElementType::f32, {batch, 4}), batch));
    return graph;
  };
}

std::string written(const AtBatch& model) { return to_onnx(model, {.producer_version = ""}); }

// The written file gives at batches that it was not made of what the model gives there.
void expect_open(const AtBatch& model) {
  const Model file = testing::parse(written(model));
  for (const std::int64_t batch : {1, 4, 9}) {
    const Tensor x = test::random_tensor(ElementType::f32, {batch, 4}, 3);
    const auto expected = op::evaluate(model(batch), std::span(&x, 1)).outputs;
    const auto found = testing::run(file, {x});
    ASSERT_EQ(found[0].shape(), expected[0].shape()) << batch;
    EXPECT_EQ(testing::elements(found[0]), testing::elements(expected[0])) << batch;
  }
}

TEST(OpenBatch, ShapesThatFollowIt) {
  expect_open(model_of([](Builder& b, Var x, std::int64_t batch) {
    return b.node1("Expand", {op::reshape(x, {batch, 1, 4}), b.integers({batch, 3, 4})});
  }));
  expect_open(model_of([](Builder&, Var x, std::int64_t batch) { return op::reshape(x, {2 * batch, 2}); }));
  expect_open(model_of([](Builder&, Var x, std::int64_t batch) { return op::reshape(x, {2, batch, 2}); }));
}

// Beside a -1 of the model's own there is no place for another.
TEST(OpenBatch, TargetShapesWithAPlaceLeftOpenAlready) {
  expect_open(model_of([](Builder& b, Var x, std::int64_t batch) {
    return b.node1("Reshape", {x, b.integers({-1, 2 * batch})});
  }));
}

TEST(OpenBatch, WhatIsTheSameForAllSamples) {
  expect_open(model_of([](Builder& b, Var x, std::int64_t batch) {
    Tensor offsets(ElementType::f32, {batch, 4});
    for (std::int64_t i = 0; i < offsets.element_count(); ++i) offsets.set(i, static_cast<double>(i % 4));
    return x + b.constant(offsets);
  }));
}

TEST(OpenBatch, IsRefusedWhereSamplesDiffer) {
  const AtBatch model = model_of([](Builder& b, Var x, std::int64_t batch) {
    Tensor offsets(ElementType::f32, {batch, 4});
    for (std::int64_t i = 0; i < offsets.element_count(); ++i) offsets.set(i, static_cast<double>(i));
    return x + b.constant(offsets, "ramp");
  });
  EXPECT_TRUE(contains(testing::error_of([&] { written(model); }), "constant %ramp"));
  EXPECT_TRUE(contains(why_batch_is_fixed(model), "constant %ramp: depends on the batch"));
  EXPECT_NO_THROW(to_onnx(model, {.fixed_batch = 3, .producer_version = ""}));
}

// At two batches a line goes through anything: a third one shows what does not follow it.
TEST(OpenBatch, IsRefusedWhereTheRuleDoesNotHold) {
  const AtBatch model = model_of([](Builder& b, Var x, std::int64_t batch) {
    return b.node1("Expand", {op::reshape(x, {batch, 1, 4}), b.integers({batch, batch * batch, 4})});
  });
  EXPECT_TRUE(contains(testing::error_of([&] { written(model); }), "depends on the batch"));
}

TEST(OpenBatch, IsRefusedWhereTheNodesDiffer) {
  const AtBatch model =
      model_of([](Builder&, Var x, std::int64_t batch) { return batch % 2 == 0 ? x + x : x - x; });
  EXPECT_TRUE(contains(testing::error_of([&] { written(model); }), "is another one at another batch"));
}

TEST(OpenBatch, FactorsOfExtents) {
  EXPECT_EQ(factor_of_batch(2, 3, 2), 1);
  EXPECT_EQ(factor_of_batch(8, 12, 2), 4);
  EXPECT_EQ(factor_of_batch(3, 4, 2), std::nullopt) << "the batch and one more";
  EXPECT_EQ(factor_of_batch(5, 5, 2), std::nullopt);
}

// --- operator sets

graph::Attributes parts(std::int64_t count) { return {{"axis", std::int64_t{0}}, {"num_outputs", count}}; }

std::int64_t set_of(const std::function<Var(Builder&, Var)>& body) {
  const auto model = [&](std::int64_t) {
    graph::Graph graph("set");
    Builder b(graph);
    b.output("y", body(b, b.input("x", ElementType::f32, {4, 4})));
    return graph;
  };
  return testing::parse(to_onnx(model, {.fixed_batch = 1, .producer_version = ""})).opsets().at("");
}

TEST(OperatorSets, AreThoseThatAttributesNeed) {
  EXPECT_EQ(set_of([](Builder& b, Var x) {
              return b.node1("Reshape", {x, b.integers({16})}, {{"allowzero", std::int64_t{1}}});
            }),
            13)
      << "without a zero the attribute says nothing";
  EXPECT_EQ(set_of([](Builder& b, Var x) { return b.node("Split", std::span(&x, 1), parts(2), 2)[1]; }), 13);
  EXPECT_EQ(set_of([](Builder& b, Var x) { return b.node("Split", std::span(&x, 1), parts(3), 3)[1]; }), 18)
      << "parts that are not equal";
  EXPECT_EQ(set_of([](Builder& b, Var x) {
              return b.node1("ReduceMean", {x, b.integers({1})}, {{"noop_with_empty_axes", std::int64_t{0}}});
            }),
            13);
  EXPECT_EQ(set_of([](Builder& b, Var x) {
              return b.node1("ReduceMean", {x}, {{"noop_with_empty_axes", std::int64_t{1}}});
            }),
            18);
  EXPECT_EQ(set_of([](Builder& b, Var x) { return b.node1("HardSwish", {x}); }), 14);
}

TEST(OperatorSets, NoAttributeIsWrittenThatTheSetDoesNotKnow) {
  const auto model = [](std::int64_t) {
    graph::Graph graph("set");
    Builder b(graph);
    const Var x = b.input("x", ElementType::f32, {4, 4});
    b.output("y", b.node1("Reshape", {x, b.integers({16})}, {{"allowzero", std::int64_t{1}}}));
    return graph;
  };
  const auto bytes = [&](int opset) {
    return to_onnx(model, {.opset = opset, .fixed_batch = 1, .producer_version = ""});
  };
  EXPECT_FALSE(contains(bytes(13), "allowzero"));
  EXPECT_TRUE(contains(bytes(14), "allowzero"));
}

}  // namespace
}  // namespace superstep::onnx
