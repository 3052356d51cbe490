// Transposed convolutions as products: the same results.
#include <array>

#include "superstep/transform/transposed_convolution.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

std::string zeros(std::int64_t count) {
  std::string text = " = [0";
  while (--count > 0) text += ", 0";
  return text + "]";
}

// Weights [5,3,height,width], with random values for weights and bias.
graph::Graph model_with(std::int64_t height, std::int64_t width, const std::string& result,
                        const std::string& attributes) {
  graph::Graph graph = graph_of("input %x : f32[2,5,3,4]\nstate %w : f32[5,3," + std::to_string(height) +
                                "," + std::to_string(width) + "]" + zeros(15 * height * width) +
                                "\nstate %b : f32[3]" + zeros(3) + "\n%y : f32" + result +
                                " = ConvTranspose(%x, %w, %b) {" + attributes + "}\noutput \"y\" = %y");
  std::uint64_t seed = 5;
  for (graph::ValueId id : graph.states())
    graph.set_data(id, random_tensor(ElementType::f32, graph.type(id).shape, seed++));
  return graph;
}

void expect_same(const graph::Graph& model, const graph::Graph& expanded) {
  const std::vector x{random_tensor(ElementType::f32, {2, 5, 3, 4}, 9)};
  const Tensor before = op::evaluate(model, x).outputs[0], after = op::evaluate(expanded, x).outputs[0];
  ASSERT_EQ(before.shape(), after.shape());
  for (std::int64_t i = 0; i < before.element_count(); ++i) ASSERT_NEAR(before.at(i), after.at(i), 1e-5) << i;
}

// Padding that is not the same on both sides, dilated taps, and positions of a block without any tap.
TEST(TransposedConvolution, IsAConvolutionToBlocksWhereWindowsOverlap) {
  struct Overlapping {
    std::int64_t height, width;
    std::string result, attributes;
    std::array<std::int64_t, 2> taps;
  };
  const Overlapping cases[] = {
      {3, 3, "[2,3,3,4]", "pads = [1, 1, 1, 1]", {3, 3}},
      {2, 3, "[2,3,3,4]", "pads = [1, 0, 0, 2]", {2, 3}},
      {3, 3, "[2,3,3,4]", "pads = [2, 2, 2, 2], dilations = [2, 2]", {5, 5}},
      {4, 4, "[2,3,6,8]", "strides = [2, 2], pads = [1, 1, 1, 1]", {3, 3}},
      {3, 3, "[2,3,6,8]", "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]", {2, 2}},
      {5, 5, "[2,3,6,8]", "strides = [2, 2], pads = [2, 1, 1, 2]", {3, 3}},
      {1, 1, "[2,3,6,8]", "strides = [2, 2], output_padding = [1, 1]", {1, 1}},
      {2, 4, "[2,3,9,12]", "strides = [3, 3], output_padding = [1, 0], pads = [0, 1, 0, 0]", {1, 2}}};
  for (const Overlapping& c : cases) {
    const graph::Graph model = model_with(c.height, c.width, c.result, c.attributes);
    const auto blocks = as_block_convolution(model, model.nodes()[0]);
    ASSERT_TRUE(blocks) << c.attributes;
    EXPECT_EQ(blocks->taps, c.taps) << c.attributes;
    const graph::Graph expanded = verified(expand_transposed(model, [](const auto&) { return true; }));
    EXPECT_EQ(operators_of(expanded), blocks->block == 1
                                          ? std::vector<std::string>{"Conv"}
                                          : (std::vector<std::string>{"Conv", "DepthToSpace"}));
    expect_same(model, expanded);
  }
}

// With %x : f32[2,5,3,4] to %t : f32[2,3,6,8] in front of `more`.
graph::Graph model_in_front_of(const std::string& more) {
  graph::Graph model = graph_of("input %x : f32[2,5,3,4]\nstate %w : f32[5,3,2,2]" + zeros(60) +
                                "\n%t : f32[2,3,6,8] = ConvTranspose(%x, %w) {strides = [2, 2]}\n" + more);
  for (graph::ValueId id : model.states())
    model.set_data(id, random_tensor(ElementType::f32, model.type(id).shape, 7));
  return model;
}

TEST(TransposedConvolution, WhatIsDoneElementByElementComesBeforeTheMove) {
  const graph::Graph model = model_in_front_of(
      "%r : f32[2,3,6,8] = Relu(%t)\n%n : f32[2,3,6,8] = Neg(%r)\n%y : f32[2,3,6,8] = Add(%n, %n)\n"
      "output \"y\" = %y");
  const graph::Graph expanded = verified(expand_transposed(model, [](const auto&) { return true; }));
  EXPECT_EQ(operators_of(expanded), (std::vector<std::string>{"Conv", "Relu", "Neg", "DepthToSpace", "Add"}));
  expect_same(model, expanded);
}

TEST(TransposedConvolution, WhatOthersReadTooIsMovedFirst) {
  const graph::Graph model =
      model_in_front_of("%r : f32[2,3,6,8] = Relu(%t)\n%y : f32[2,3,6,8] = Add(%r, %t)\noutput \"y\" = %y");
  const graph::Graph expanded = verified(expand_transposed(model, [](const auto&) { return true; }));
  EXPECT_EQ(operators_of(expanded), (std::vector<std::string>{"Conv", "DepthToSpace", "Relu", "Add"}));
  expect_same(model, expanded);
}

TEST(TransposedConvolution, IsAProductWhereWindowsDoNotOverlap) {
  for (const bool three : {false, true}) {
    const graph::Graph model = three ? model_with(3, 3, "[2,3,9,12]", "strides = [3, 3]")
                                     : model_with(2, 2, "[2,3,6,8]", "strides = [2, 2]");
    const graph::Graph expanded = verified(expand_transposed(model, [](const auto&) { return true; }));
    EXPECT_EQ(operators_of(expanded), (std::vector<std::string>{"Conv", "DepthToSpace"}));
    expect_same(model, expanded);
  }
}

TEST(TransposedConvolution, StaysWhereItIsNone) {
  const graph::Graph models[] = {model_with(3, 3, "[2,3,7,9]", "strides = [2, 2]"),
                                 model_with(2, 2, "[2,3,4,6]", "strides = [2, 2], pads = [1, 1, 1, 1]"),
                                 model_with(2, 3, "[2,3,6,12]", "strides = [2, 3]")};
  for (const graph::Graph& model : models) {
    EXPECT_FALSE(is_pointwise_transposed(model, model.nodes()[0]));
    const graph::Graph same = expand_transposed(model, [](const auto&) { return true; });
    EXPECT_EQ(operators_of(same), operators_of(model));
  }
}

TEST(TransposedConvolution, StaysWhereNobodyWantsIt) {
  const graph::Graph model = model_with(2, 2, "[2,3,6,8]", "strides = [2, 2]");
  EXPECT_TRUE(is_pointwise_transposed(model, model.nodes()[0]));
  const graph::Graph same = expand_transposed(model, [](const auto&) { return false; });
  EXPECT_EQ(operators_of(same), operators_of(model));
}

}  // namespace
}  // namespace superstep::transform
