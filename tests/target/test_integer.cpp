// Models on bytes: the CPU target against the reference evaluation of the same graph.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <span>

#include "superstep/op/product/quantization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/target.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/precision/quantize.h"
#include "tests/cpu_kernels/support/assumed_pair_rate.h"
#include "tests/processor.h"
#include "tests/target/models.h"

namespace superstep {
namespace {

using target::CompileOptions;
using target::Executable;
using target::GraphAtBatch;

// Every value that could be asked for spans [-4, 4].
transform::RangeTable wide_ranges(const graph::Graph& model) {
  transform::RangeTable ranges;
  for (graph::ValueId id : transform::values_to_calibrate(model)) ranges[model.value(id).name] = {-4, 4};
  return ranges;
}

GraphAtBatch quantized(const GraphAtBatch& model) {
  return [model](std::int64_t batch) {
    const graph::Graph graph = model(batch);
    return transform::quantize(graph, wide_ranges(graph));
  };
}

std::vector<Tensor> run(const char* target, const GraphAtBatch& model, const CompileOptions& options) {
  const auto executable = target::find_target(target).compile(model, options);
  std::vector<Tensor> inputs, outputs;
  std::uint64_t seed = 5;
  for (const auto& port : executable->inputs())
    inputs.push_back(test::random_tensor(port.type.element, port.type.shape, seed++));
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  executable->run(inputs, outputs);
  return outputs;
}

// The largest difference over the largest element.
double difference(const Tensor& a, const Tensor& b) {
  double largest = 0, scale = 1e-6;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
    scale = std::max(scale, std::abs(b.at(i)));
  }
  return largest / scale;
}

std::vector<std::string> kernels_of(const GraphAtBatch& model, std::int64_t batch) {
  std::vector<std::string> kernels;
  const auto executable = target::find_target("cpu").compile(model, {.batch = batch});
  for (const target::PlanStep& step : executable->summary().steps)
    kernels.push_back(step.op + ": " + step.kernel);
  return kernels;
}

graph::Graph attention(std::int64_t batch) { return test::attention_network(batch, 32); }

TEST(Integer, AgreesWithTheReference) {
  for (const std::int64_t micro_batch : {1, 3, 6}) {
    const GraphAtBatch model = quantized(attention);
    const auto expected = run("reference", model, {.batch = 6});
    const auto actual = run("cpu", model, {.batch = 6, .micro_batch = micro_batch, .threads = 2});
    // A value on the border of two bytes may fall to either side: rounding in f32 and in f64 differ.
    EXPECT_LT(difference(actual[0], expected[0]), 0.01) << micro_batch;
  }
}

TEST(Integer, IsNotTheFloatingModel) {
  const auto bytes = run("cpu", quantized(attention), {.batch = 4}),
             exact = run("cpu", attention, {.batch = 4});
  EXPECT_GT(difference(bytes[0], exact[0]), 1e-5);
  EXPECT_LT(difference(bytes[0], exact[0]), 0.2);
}

TEST(Integer, RunsOnItsOwnKernels) {
  int products = 0;
  for (const std::string& kernel : kernels_of(quantized(attention), 4)) {
    EXPECT_EQ(kernel.find("reference"), std::string::npos) << kernel;
    products += kernel.find("integer convolution") != std::string::npos;
  }
  EXPECT_GE(products, 4);
}

TEST(Integer, GivesTheSameBitsOnAnyNumberOfThreads) {
  const GraphAtBatch model = quantized(attention);
  const auto one = run("cpu", model, {.batch = 8, .micro_batch = 2, .threads = 1});
  const auto two = run("cpu", model, {.batch = 8, .micro_batch = 2, .threads = 2});
  EXPECT_EQ(difference(one[0], two[0]), 0);
}

// Two convolutions in a row: bytes go from one to the next.
graph::Graph two_convolutions(std::int64_t batch) {
  graph::Graph graph("two");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, 16, 6, 6});
  const op::Var y = op::leaky_relu(layers.conv(x, "first", 16, 3), 0.1);
  b.output("y", layers.conv(y, "second", 8, 3));
  return graph;
}

TEST(Integer, BytesGoFromProductToProduct) {
  const auto kernels = kernels_of(quantized(two_convolutions), 4);
  const auto fused = std::ranges::find_if(kernels, [](const std::string& kernel) {
    return kernel.find("ConvInteger+Add+LeakyRelu+QuantizeLinear") != std::string::npos;
  });
  EXPECT_NE(fused, kernels.end());
  const auto expected = run("reference", quantized(two_convolutions), {.batch = 4});
  EXPECT_LT(difference(run("cpu", quantized(two_convolutions), {.batch = 4})[0], expected[0]), 0.01);
}

// A level of a U-Net: pooled, made larger again, joined to what was pooled.
graph::Graph small_unet(std::int64_t batch) {
  graph::Graph graph("level");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, 16, 8, 8});
  const op::Var skip = op::relu(layers.conv(x, "above", 16, 3, {.pads = {1, 1, 1, 1}}));
  const op::Var pooled = b.node(
      "MaxPool", std::vector{skip},
      {{"kernel_shape", std::vector<std::int64_t>{2, 2}}, {"strides", std::vector<std::int64_t>{2, 2}}},
      1)[0];
  const op::Var below = op::relu(layers.conv(pooled, "below", 32, 3, {.pads = {1, 1, 1, 1}}));
  const op::Var up = b.node("ConvTranspose",
                            std::vector{below, layers.parameter("up.weight", {32, 16, 2, 2}, 32),
                                        layers.parameter("up.bias", {16}, 32)},
                            {{"strides", std::vector<std::int64_t>{2, 2}}}, 1)[0];
  b.output("y", layers.conv(op::concat(std::vector{up, skip}, 1), "joined", 8, 3));
  return graph;
}

// A decoder: pixels doubled by windows that overlap, and a transposed convolution of stride 1.
graph::Graph small_decoder(std::int64_t batch) {
  graph::Graph graph("decoder");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, 16, 6, 5});
  const auto transposed = [&](op::Var from, const std::string& name, std::int64_t taps, std::int64_t stride) {
    return op::relu(b.node(
        "ConvTranspose",
        std::vector{from, layers.parameter(name + ".weight", {16, 16, taps, taps}, 16),
                    layers.parameter(name + ".bias", {16}, 16)},
        {{"strides", std::vector{stride, stride}}, {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}, 1)[0]);
  };
  b.output("y", layers.conv(transposed(transposed(x, "twice", 4, 2), "same", 3, 1), "last", 8, 1));
  return graph;
}

// The rectifiers are done as sums leave registers, and what is moved are bytes.
TEST(Integer, ADecoderStaysOnBytes) {
  const GraphAtBatch model = quantized(small_decoder);
  const auto expected = run("reference", model, {.batch = 4});
  EXPECT_LT(difference(run("cpu", model, {.batch = 4})[0], expected[0]), 0.01);
  int products = 0, conversions = 0;
  for (const std::string& kernel : kernels_of(model, 4)) {
    EXPECT_EQ(kernel.find("reference"), std::string::npos) << kernel;
    EXPECT_FALSE(kernel.starts_with("Relu")) << kernel;
    conversions += kernel.starts_with("QuantizeLinear");
    products += kernel.find("Relu+QuantizeLinear: integer convolution") != std::string::npos;
  }
  EXPECT_EQ(products, 2);
  EXPECT_EQ(conversions, 1);  // of the input
}

TEST(Integer, ALevelOfAUNetStaysOnBytes) {
  const GraphAtBatch model = quantized(small_unet);
  for (const std::int64_t micro_batch : {1, 4}) {
    const auto expected = run("reference", model, {.batch = 4});
    EXPECT_LT(difference(run("cpu", model, {.batch = 4, .micro_batch = micro_batch})[0], expected[0]), 0.01);
  }
  int conversions = 0;
  for (const std::string& kernel : kernels_of(model, 4)) {
    EXPECT_EQ(kernel.find("reference"), std::string::npos) << kernel;
    EXPECT_EQ(kernel.find("ConvTranspose"), std::string::npos) << kernel;
    conversions += kernel.starts_with("QuantizeLinear");
  }
  EXPECT_EQ(conversions, 1);  // of the input
}

// The sum of two products: the earlier one is finished on its own, the later one adds it as it leaves
// registers.
graph::Graph block_with_shortcut(std::int64_t batch) {
  graph::Graph graph("block");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, 32, 8, 8});
  const op::Var inner = op::relu(layers.conv(x, "inner", 32, 3, {.pads = {1, 1, 1, 1}}));
  b.output("y", op::relu(layers.conv(inner, "last", 64, 1) + layers.conv(x, "shortcut", 64, 1)));
  return graph;
}

TEST(Integer, ASumOfTwoProductsIsAnEpilogue) {
  if (!test::multiplies_bytes()) GTEST_SKIP() << "no products of bytes here";
  const GraphAtBatch model = quantized(block_with_shortcut);
  int finished = 0, joined = 0, apart = 0;
  for (const std::string& kernel : kernels_of(model, 4)) {
    finished += kernel.starts_with("ConvInteger+Add+QuantizeLinear:");
    joined += kernel.starts_with("ConvInteger+Add+Add+Relu:") && kernel.contains("add bytes");
    apart += kernel.starts_with("Add") || kernel.starts_with("DequantizeLinear");
  }
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(joined, 1);
  EXPECT_EQ(apart, 0);
  const auto expected = run("reference", model, {.batch = 4});
  EXPECT_LT(difference(run("cpu", model, {.batch = 4})[0], expected[0]), 0.01);
}

// Residual blocks: what the first one gives is read by the second one's first product and by its sum.
graph::Graph two_blocks(std::int64_t batch) {
  graph::Graph graph("blocks");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, 32, 8, 8});
  const op::Var first = op::relu(layers.conv(x, "first", 32, 1));
  const op::Var inner = op::relu(layers.conv(first, "inner", 32, 3, {.pads = {1, 1, 1, 1}}));
  const op::Var second = op::relu(first + layers.conv(inner, "last", 32, 1));
  b.output("y", layers.conv(second, "after", 8, 1));
  return graph;
}

TEST(Integer, ResidualsAreReadAsBytes) {
  if (!test::multiplies_bytes()) GTEST_SKIP() << "no products of bytes here";
  const GraphAtBatch model = quantized(two_blocks);
  int conversions = 0, added = 0;
  for (const std::string& kernel : kernels_of(model, 4)) {
    conversions += kernel.starts_with("QuantizeLinear") || kernel.starts_with("DequantizeLinear");
    added += kernel.starts_with("ConvInteger+Add+Add+Relu+QuantizeLinear:") && kernel.contains("add bytes");
  }
  EXPECT_EQ(conversions, 1);  // of the input
  EXPECT_EQ(added, 1);
  const auto expected = run("reference", model, {.batch = 4});
  EXPECT_LT(difference(run("cpu", model, {.batch = 4})[0], expected[0]), 0.01);
}

// Bytes that are read outside a product's epilogue, here by the mean, are made f32 for it.
graph::Graph summed_and_read(std::int64_t batch) {
  graph::Graph graph("read");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 32, 8, 8});
  const op::Var scale = b.constant(Tensor::scalar(0.03f)),
                zero = b.constant(Tensor::scalar(static_cast<std::uint8_t>(117)));
  const op::Var read = op::dequantize_linear(op::quantize_linear(x, scale, zero), scale, zero);
  b.output("y", op::relu(read) + op::reduce_mean(read, {2, 3}, true));
  return graph;
}

TEST(Integer, BytesThatOthersReadAreMadeFloats) {
  const auto expected = run("reference", summed_and_read, {.batch = 4});
  EXPECT_LT(difference(run("cpu", summed_and_read, {.batch = 4})[0], expected[0]), 1e-5);
}

// Which products the CPU leaves in f32. Thin ones cost more to make bytes than they gain.
graph::Graph one_convolution(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t kernel) {
  graph::Graph graph("one");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, in, 16, 16});
  b.output("y", layers.conv(x, "only", out, kernel));
  return graph;
}

TEST(Integer, ProductsThatBytesSlowDownStayInF32) {
  if (!test::multiplies_bytes_by_fours()) GTEST_SKIP() << "every product is slower on bytes here";
  const auto slow = [](const graph::Graph& model) {
    return target::find_target("cpu").slow_on_bytes(model, {});
  };
  const graph::Graph thin = one_convolution(4, 16, 8, 1), wide = one_convolution(4, 64, 64, 3);
  ASSERT_EQ(slow(thin).size(), 1u);
  EXPECT_GT(slow(thin)[0].share, 1);
  EXPECT_TRUE(slow(wide).empty());
  EXPECT_TRUE(target::find_target("reference").slow_on_bytes(thin, {}).empty());
  // Named so that quantize() leaves it.
  const graph::Graph kept = transform::quantize(thin, wide_ranges(thin), {.kept = {slow(thin)[0].result}});
  for (const graph::Node& node : kept.nodes()) EXPECT_NE(node.op, "ConvInteger");
}

// Of layers that Winograd's algorithm multiplies by pairs of bf16 in fewer cycles than bytes take directly,
// and of a pointwise one, which bytes gain by, in front of them.
graph::Graph pointwise_and_wide(std::int64_t batch) {
  graph::Graph graph("three");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, 512, 32, 32});
  const op::Var y = op::relu(layers.conv(x, "pointwise", 256, 1));
  const op::Var z = op::relu(layers.conv(y, "wide", 256, 3, {.pads = {1, 1, 1, 1}}));
  b.output("y", layers.conv(z, "last", 256, 3, {.pads = {1, 1, 1, 1}}));
  return graph;
}

TEST(Integer, WhatIsFasterInBf16IsInBf16WhereThatMayBe) {
  const kernels::AssumedPairRate fast(kernels::PairRate::fast);
  if (!kernels::multiplies_pairs_fast()) GTEST_SKIP() << "this processor multiplies no pairs";
  const graph::Graph model = pointwise_and_wide(1);
  const target::Target& cpu = target::find_target("cpu");
  const transform::QuantizeOptions options{.beside_bf16 = true};
  const auto slow = cpu.slow_on_bytes(model, options);
  using Names = std::set<std::string, std::less<>>;
  ASSERT_EQ(slow.size(), 2u);
  for (const target::SlowOnBytes& product : slow) {
    EXPECT_TRUE(product.in_bf16);
    EXPECT_GT(product.share, 1);
  }
  EXPECT_EQ(cpu.faster_in_bf16(model, options), (Names{slow[0].result, slow[1].result}));
  // What is to stay in f32 stays there, behind what is in bf16, too.
  transform::QuantizeOptions kept = options;
  kept.kept.insert(slow[1].result);
  EXPECT_EQ(cpu.faster_in_bf16(model, kept), (Names{slow[0].result}));
  EXPECT_TRUE(cpu.slow_on_bytes(model, {}).empty());
  EXPECT_TRUE(cpu.faster_in_bf16(model, {}).empty());
  EXPECT_TRUE(target::find_target("reference").faster_in_bf16(model, options).empty());
}

TEST(Integer, NothingIsInBf16WherePairsAreSlow) {
  const kernels::AssumedPairRate slow(kernels::PairRate::slow);
  const graph::Graph model = pointwise_and_wide(1);
  const target::Target& cpu = target::find_target("cpu");
  EXPECT_TRUE(cpu.faster_in_bf16(model, {.beside_bf16 = true}).empty());
  for (const target::SlowOnBytes& product : cpu.slow_on_bytes(model, {.beside_bf16 = true}))
    EXPECT_FALSE(product.in_bf16) << product.result;
}

// The element types that the convolutions read.
std::vector<ElementType> types_read(const graph::Graph& graph) {
  std::vector<ElementType> types;
  for (const graph::Node& node : graph.nodes())
    if (node.op == "Conv" || node.op == "ConvInteger") types.push_back(graph.type(node.inputs[0]).element);
  return types;
}

TEST(Integer, ThoseProductsAloneAreInBf16) {
  const auto model = [](std::int64_t batch) {
    graph::Graph graph("three");
    op::Builder b(graph);
    test::Layers layers(b, 3);
    op::Var x = b.input("x", ElementType::f32, {batch, 32, 8, 8});
    for (const char* name : {"bytes", "narrow", "wide"}) x = op::relu(layers.conv(x, name, 32, 1));
    b.output("y", x);
    return graph;
  };
  std::vector<std::string> names;
  const graph::Graph plain = model(2);
  for (const graph::Node& node : plain.nodes())
    if (node.op == "Conv") names.push_back(plain.value(node.outputs[0]).name);
  ASSERT_EQ(names.size(), 3u);
  const auto pass = transform::quantize_pass(
      wide_ranges(plain),
      [&](const graph::Graph&) {
        return transform::QuantizeOptions{.kept = {names[1], names[2]}};
      },
      [&](const graph::Graph&) { return std::set<std::string, std::less<>>{names[1]}; });
  const GraphAtBatch mixed = [&](std::int64_t batch) {
    return transform::run_passes(model(batch), std::span(&pass, 1));
  };
  EXPECT_EQ(types_read(mixed(2)), (std::vector{ElementType::u8, ElementType::bf16, ElementType::f32}));
  const auto exact = run("cpu", model, {.batch = 2}), found = run("cpu", mixed, {.batch = 2});
  EXPECT_LT(difference(found[0], exact[0]), 0.03);
  EXPECT_LT(difference(found[0], run("reference", mixed, {.batch = 2})[0]), 0.01);
}

// By pairs (AVX2) wide pointwise products gain, and an expansion that runs as one with what is behind it does
// not.
TEST(Integer, WhatGainsByPairsIsPutOnBytes) {
  if (test::multiplies_bytes_by_fours() || !test::multiplies_bytes())
    GTEST_SKIP() << "no products by pairs here";
  const auto slow = [](const graph::Graph& model) {
    return target::find_target("cpu").slow_on_bytes(model, {});
  };
  EXPECT_TRUE(slow(one_convolution(4, 256, 256, 1)).empty());
  graph::Graph graph("expansion");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {4, 64, 16, 16});
  const op::Var wide = op::relu(layers.conv(x, "expand", 128, 1));
  const op::ConvAttributes attributes{.pads = {1, 1, 1, 1}, .group = 128};
  b.output("y", op::conv(wide, layers.parameter("depthwise", {128, 1, 3, 3}, 9), {}, attributes));
  ASSERT_EQ(slow(graph).size(), 1u);
}

// The same thin product behind a wide one, which gives it bytes for nothing.
TEST(Integer, ProductsThatGetBytesForNothingTakeThem) {
  if (!test::multiplies_bytes_by_fours()) GTEST_SKIP() << "every product is slower on bytes here";
  graph::Graph graph("two");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {4, 64, 16, 16});
  const op::Var y = op::relu(layers.conv(x, "wide", 16, 3));
  b.output("y", layers.conv(y, "thin", 16, 1));
  EXPECT_TRUE(target::find_target("cpu").slow_on_bytes(graph, {}).empty());
}

// Rows of three dimensions, and sums that are read as they are.
graph::Graph sums_and_rows(std::int64_t batch) {
  graph::Graph graph("rows");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 5, 16});
  const op::Var scale = b.constant(Tensor::scalar(0.01f)),
                zero = b.constant(Tensor::scalar(std::uint8_t{120}));
  Tensor weights(ElementType::i8, {16, 12});
  for (std::int64_t i = 0; i < weights.element_count(); ++i)
    weights.set(i, static_cast<double>(i * 37 % 255 - 127));
  const op::Var bytes = op::quantize_linear(x, scale, zero);
  const op::Var sums = b.node1("MatMulInteger", {bytes, b.constant(weights), zero});
  b.output("sums", sums);
  const op::Var again = b.node1("MatMulInteger", {bytes, b.constant(weights), zero});
  b.output("real", op::dequantize_linear(again, scale));
  b.output("back", op::dequantize_linear(bytes, scale, zero));
  return graph;
}

// Scales that are parameters, as model files have them, and a scale a channel.
graph::Graph stored_scales(std::int64_t batch) {
  graph::Graph graph("scales");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 4, 3});
  const op::Var zero = b.constant(Tensor::scalar(std::uint8_t{120}));
  const op::Var one = b.state("one", Tensor::scalar(0.013f));
  b.output("one scale", op::quantize_linear(x, one, zero));
  const op::Var each = b.state("each", Tensor::from<float>({4}, {0.01f, 0.02f, 0.03f, 0.04f}));
  const op::Var zeros = b.constant(Tensor::full(ElementType::u8, {4}, 0));
  b.output("a scale a channel", op::quantize_linear(x, each, zeros, 1));
  return graph;
}

TEST(Integer, TakesScalesThatAreParameters) {
  const auto kernels = kernels_of(stored_scales, 3);
  EXPECT_NE(std::ranges::find_if(kernels,
                                 [](const std::string& kernel) {
                                   return kernel.starts_with("QuantizeLinear: vector program");
                                 }),
            kernels.end());
  const auto expected = run("reference", stored_scales, {.batch = 3});
  const auto actual = run("cpu", stored_scales, {.batch = 3});
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(difference(actual[i], expected[i]), 0);
}

TEST(Integer, SumsAreExact) {
  const auto expected = run("reference", sums_and_rows, {.batch = 3});
  const auto actual = run("cpu", sums_and_rows, {.batch = 3});
  EXPECT_EQ(difference(actual[0], expected[0]), 0);
  EXPECT_LT(difference(actual[1], expected[1]), 1e-6);
  EXPECT_LT(difference(actual[2], expected[2]), 1e-6);
}

}  // namespace
}  // namespace superstep
