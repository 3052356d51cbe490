// Forms of older operator sets, against what they must give, worked out by hand.
#include <cmath>

#include "tests/onnx/support.h"

namespace superstep::onnx {
namespace {

using testing::attribute;
using testing::contains;
using testing::elements;
using testing::floats;
using testing::integers;
using testing::OneNode;
using testing::refusal;
using testing::run_node;
using testing::values;
using Elements = std::vector<double>;
using Integers = std::vector<std::int64_t>;

Elements first(const OneNode& one, const std::vector<Tensor>& inputs) {
  return elements(run_node(one, inputs)[0]);
}

const Tensor x22 = values({2, 2}, {1, 2, 3, 4});

TEST(Adapters, BroadcastingFromAnAxis) {
  const OneNode along_rows{
      .op = "Add", .opset = 6, .attributes = {attribute("broadcast", 1), attribute("axis", 0)}};
  const OneNode along_columns{.op = "Add", .opset = 6, .attributes = {attribute("broadcast", 1)}};
  const Tensor b = values({10, 20});
  EXPECT_EQ(first(along_rows, {x22, b}), (Elements{11, 12, 23, 24}));
  EXPECT_EQ(first(along_columns, {x22, b}), (Elements{11, 22, 13, 24}));
  EXPECT_TRUE(contains(refusal({.op = "Add", .opset = 6}, {x22, b}), "broadcasting is not asked for"));
  EXPECT_TRUE(contains(
      refusal({.op = "Add", .opset = 6, .attributes = {attribute("broadcast", 1), attribute("axis", 2)}},
              {x22, b}),
      "axis"));
}

TEST(Adapters, PReluSlopeAChannel) {
  const Tensor x = values({1, 2, 2}, {-1, 1, -1, 1});
  EXPECT_EQ(first({.op = "PRelu", .opset = 6}, {x, values({2, 3})}), (Elements{-2, 1, -3, 1}));
}

TEST(Adapters, ClipByAttributes) {
  const std::vector<Message> bounds{attribute("min", -1.0f), attribute("max", 2.0f)};
  EXPECT_EQ(first({.op = "Clip", .opset = 6, .attributes = bounds}, {values({-5, 0, 5})}),
            (Elements{-1, 0, 2}));
  EXPECT_EQ(first({.op = "Clip", .opset = 10, .attributes = {bounds[1]}}, {values({-5, 0, 5})}),
            (Elements{-5, 0, 2}));
}

TEST(Adapters, DropoutAtInference) {
  for (std::int64_t opset : {6, 7, 10})
    EXPECT_EQ(
        first({.op = "Dropout", .opset = opset, .attributes = {attribute("ratio", 0.9f)}}, {values({1, 2})}),
        (Elements{1, 2}));
  const auto outputs = run_node({.op = "Dropout", .opset = 7, .outputs = 2}, {values({1, 2})});
  EXPECT_EQ(outputs[1].type(), ElementType::f32);  // the mask was of the input's type then
  EXPECT_EQ(elements(outputs[1]), (Elements{1, 1}));
}

TEST(Adapters, CastByName) {
  const auto result =
      run_node({.op = "Cast", .opset = 1, .attributes = {attribute("to", "INT64")}}, {values({1.7f})});
  EXPECT_EQ(result[0].type(), ElementType::i64);
  EXPECT_TRUE(contains(refusal({.op = "Cast", .opset = 1, .attributes = {attribute("to", "INTEGER")}}, {x22}),
                       "there is no type 'INTEGER'"));
}

TEST(Adapters, CastToWhatAGraphDoesNotHaveIsRefused) {
  EXPECT_TRUE(contains(refusal({.op = "Cast", .attributes = {attribute("to", 8)}}, {x22}),
                       "type string have no place"));
  EXPECT_TRUE(contains(refusal({.op = "Cast", .attributes = {attribute("to", 17)}}, {x22}), "f8e4m3fn"));
}

TEST(Adapters, SoftmaxOverEverythingFromAnAxisOn) {
  const Tensor x(ElementType::f32, {2, 2, 2});
  EXPECT_EQ(first({.op = "Softmax", .opset = 11}, {x})[0], 0.25);
  EXPECT_EQ(first({.op = "Softmax", .opset = 11, .attributes = {attribute("axis", 0)}}, {x})[0], 0.125);
  EXPECT_EQ(first({.op = "Softmax", .opset = 11, .attributes = {attribute("axis", -1)}}, {x})[0], 0.5);
  EXPECT_EQ(first({.op = "Softmax", .opset = 13}, {x})[0], 0.5);
  EXPECT_NEAR(first({.op = "LogSoftmax", .opset = 9}, {x})[0], -std::log(4.0), 1e-6);
  EXPECT_TRUE(
      contains(refusal({.op = "Softmax", .opset = 11, .attributes = {attribute("axis", 4)}}, {x}), "axis"));
}

TEST(Adapters, AxesAsAttributes) {
  const auto unsqueezed = run_node(
      {.op = "Unsqueeze", .opset = 11, .attributes = {attribute("axes", Integers{0, 2})}}, {values({1, 2})});
  EXPECT_EQ(unsqueezed[0].shape(), (Shape{1, 2, 1}));
  const auto squeezed =
      run_node({.op = "Squeeze", .opset = 1, .attributes = {attribute("axes", Integers{0})}},
               {values({1, 2, 1}, {1, 2})});
  EXPECT_EQ(squeezed[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(run_node({.op = "Squeeze", .opset = 11}, {values({1, 2, 1}, {1, 2})})[0].shape(), (Shape{2}));
}

TEST(Adapters, ReductionAxesAsAttributes) {
  const std::vector<Message> rows{attribute("axes", Integers{1}), attribute("keepdims", 0)};
  EXPECT_EQ(first({.op = "ReduceSum", .opset = 12, .attributes = rows}, {x22}), (Elements{3, 7}));
  EXPECT_EQ(first({.op = "ReduceMax", .opset = 17, .attributes = rows}, {x22}), (Elements{2, 4}));
  EXPECT_EQ(first({.op = "ReduceMean", .opset = 6}, {x22}), (Elements{2.5}));
}

TEST(Adapters, SliceSplitPadTopKByAttributes) {
  const std::vector<Message> slice{attribute("starts", Integers{0}), attribute("ends", Integers{1}),
                                   attribute("axes", Integers{1})};
  EXPECT_EQ(first({.op = "Slice", .opset = 9, .attributes = slice}, {x22}), (Elements{1, 3}));
  const OneNode split{
      .op = "Split", .opset = 11, .attributes = {attribute("split", Integers{1, 2})}, .outputs = 2};
  EXPECT_EQ(elements(run_node(split, {values({1, 2, 3})})[1]), (Elements{2, 3}));
  EXPECT_EQ(elements(run_node({.op = "Split", .opset = 2, .outputs = 2}, {x22})[1]), (Elements{3, 4}));
  const std::vector<Message> pad{attribute("pads", Integers{1, 0}), attribute("value", 7.0f)};
  EXPECT_EQ(first({.op = "Pad", .opset = 2, .attributes = pad}, {values({1, 2})}), (Elements{7, 1, 2}));
  EXPECT_EQ(first({.op = "Pad", .opset = 1, .attributes = {attribute("paddings", Integers{0, 1})}},
                  {values({1, 2})}),
            (Elements{1, 2, 0}));
  EXPECT_EQ(
      first({.op = "TopK", .opset = 1, .attributes = {attribute("k", 1)}, .outputs = 2}, {values({1, 5, 2})}),
      (Elements{5}));
}

TEST(Adapters, FirstFormsOfTileAndConcat) {
  const OneNode tile{.op = "Tile",
                     .opset = 1,
                     .initializers = {floats("tiles", {1}, {2}), floats("axis", {1}, {1})},
                     .initializer_names = {"tiles", "axis"}};
  EXPECT_EQ(first(tile, {x22}), (Elements{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(first({.op = "Concat", .opset = 1}, {x22, x22}), (Elements{1, 2, 1, 2, 3, 4, 3, 4}));
}

TEST(Adapters, UpsampleAndTheFirstResize) {
  const Tensor picture = values({1, 1, 1, 2}, {1, 2});
  const Elements doubled{1, 1, 2, 2};
  const std::vector<float> scales{1, 1, 1, 2};
  EXPECT_EQ(first({.op = "Upsample", .opset = 1, .attributes = {attribute("width_scale", 2.0f)}}, {picture}),
            doubled);
  EXPECT_EQ(first({.op = "Upsample", .opset = 7, .attributes = {attribute("scales", scales)}}, {picture}),
            doubled);
  for (const char* op : {"Upsample", "Resize"}) {
    const OneNode one{.op = op,
                      .opset = op == std::string("Resize") ? 10 : 9,
                      .initializers = {floats("scales", {4}, scales)},
                      .initializer_names = {"scales"}};
    EXPECT_EQ(first(one, {picture}), doubled) << op;
  }
  // Linear interpolation between places that are divided by the scale: 1, 1.5, 2, 2.
  const OneNode linear{.op = "Resize",
                       .opset = 10,
                       .attributes = {attribute("mode", "linear")},
                       .initializers = {floats("scales", {4}, scales)},
                       .initializer_names = {"scales"}};
  EXPECT_EQ(first(linear, {picture}), (Elements{1, 1.5, 2, 2}));
}

TEST(Adapters, GroupNormalizationWithAScaleAGroup) {
  const Tensor x = values({1, 4, 1}, {-1, 1, -1, 1});
  const OneNode one{.op = "GroupNormalization",
                    .opset = 18,
                    .attributes = {attribute("num_groups", 2), attribute("epsilon", 0.0f)},
                    .initializers = {floats("scale", {2}, {1, 10}), floats("bias", {2}, {0, 5})},
                    .initializer_names = {"scale", "bias"}};
  EXPECT_EQ(first(one, {x}), (Elements{-1, 1, -5, 15}));
  OneNode uneven = one;
  uneven.attributes[0] = attribute("num_groups", 3);
  EXPECT_TRUE(contains(refusal(uneven, {x}), "the channels do not divide into the groups"));
}

TEST(Adapters, BatchNormalizationOfOldSets) {
  const auto one = [](std::int64_t opset, std::vector<Message> attributes, int outputs = 1) {
    attributes.push_back(attribute("epsilon", 0.0f));
    return OneNode{.op = "BatchNormalization",
                   .opset = opset,
                   .attributes = std::move(attributes),
                   .initializers = {floats("s", {1}, {2}), floats("b", {1}, {1}), floats("m", {1}, {3}),
                                    floats("v", {1}, {4})},
                   .initializer_names = {"s", "b", "m", "v"},
                   .outputs = outputs};
  };
  const Tensor x = values({2, 1, 1}, {3, 5});
  EXPECT_EQ(first(one(6, {attribute("is_test", 1)}), {x}), (Elements{1, 3}));
  EXPECT_EQ(first(one(9, {}), {x}), (Elements{1, 3}));
  EXPECT_EQ(first(one(9, {}, 3), {x}), (Elements{-1, 3}));  // more outputs: statistics of the batch
  EXPECT_TRUE(contains(refusal(one(7, {attribute("spatial", 0)}), {x}), "spatial = 0"));
  EXPECT_TRUE(contains(refusal(one(9, {}, 5), {x}), "saved statistics"));
}

TEST(Adapters, ConstantOfEveryForm) {
  const auto constant = [](Message form) {
    return elements(run_node({.op = "Constant", .attributes = {std::move(form)}}, {})[0]);
  };
  EXPECT_EQ(constant(testing::tensor_attribute("value", floats("", {2}, {1, 2}))), (Elements{1, 2}));
  EXPECT_EQ(constant(attribute("value_float", 1.5f)), (Elements{1.5}));
  EXPECT_EQ(constant(attribute("value_int", 3)), (Elements{3}));
  EXPECT_EQ(constant(attribute("value_floats", std::vector<float>{1, 2})), (Elements{1, 2}));
  EXPECT_EQ(constant(attribute("value_ints", Integers{4, 5})), (Elements{4, 5}));
  EXPECT_TRUE(contains(refusal({.op = "Constant", .attributes = {attribute("value_string", "a")}}, {}),
                       "holds strings"));
  EXPECT_TRUE(contains(refusal({.op = "Constant"}, {}), "holds no value"));
}

TEST(Adapters, AttributesThatAnOperatorDoesNotHaveAreRefused) {
  const std::string text = refusal({.op = "Softmax", .attributes = {attribute("axes", 1)}}, {x22});
  EXPECT_TRUE(
      contains(text, "has an attribute 'axes', which Softmax has in no operator set (did you mean 'axis'?"));
  EXPECT_TRUE(contains(refusal({.op = "Relu", .attributes = {attribute("slope", 1)}}, {x22}), "'slope'"));
  EXPECT_EQ(
      refusal({.op = "Relu", .opset = 5, .attributes = {attribute("consumed_inputs", Integers{0})}}, {x22}),
      "");
}

TEST(Adapters, IntegersOfFourBitsAreDequantized) {
  const OneNode one{.op = "DequantizeLinear",
                    .opset = 21,
                    .initializers = {testing::tensor("q", 22, {3}, "\x8f\x07"), floats("scale", {}, {0.5f})},
                    .initializer_names = {"q", "scale"}};
  EXPECT_EQ(first(one, {}), (Elements{-0.5, -4, 3.5}));
}

TEST(Adapters, OperatorsOfOnnxRuntime) {
  const std::string domain = "com.microsoft";
  EXPECT_NEAR(first({.op = "Gelu", .domain = domain}, {values({1})})[0], 0.8413447, 1e-6);
  EXPECT_NEAR(first({.op = "FastGelu", .domain = domain}, {values({0.5f}), values({0.5f})})[0], 0.841192,
              1e-5);
  EXPECT_NEAR(first({.op = "QuickGelu", .domain = domain}, {values({1})})[0], 1 / (1 + std::exp(-1.702)),
              1e-6);
  EXPECT_EQ(first({.op = "FusedMatMul",
                   .attributes = {attribute("transB", 1), attribute("alpha", 2.0f)},
                   .domain = domain},
                  {x22, x22}),
            (Elements{10, 22, 22, 50}));
  EXPECT_EQ(first({.op = "FusedGemm", .attributes = {attribute("activation", "Relu")}, .domain = domain},
                  {x22, values({2, 2}, {-1, 0, 0, 1})}),
            (Elements{0, 2, 0, 4}));
  EXPECT_TRUE(
      contains(refusal({.op = "FusedGemm", .attributes = {attribute("activation", "Sine")}, .domain = domain},
                       {x22, x22}),
               "'Sine'"));
  const OneNode skip{.op = "SkipLayerNormalization",
                     .initializers = {floats("gamma", {2}, {3, 3})},
                     .initializer_names = {"gamma"},
                     .domain = domain};
  EXPECT_NEAR(first(skip, {values({1, 1, 2}, {1, 2}), values({1, 1, 2}, {0, 1})})[0], -3, 1e-5);
  EXPECT_TRUE(contains(refusal({.op = "Relu", .domain = domain}, {x22}), "there is no such operator here"));
}

}  // namespace
}  // namespace superstep::onnx
