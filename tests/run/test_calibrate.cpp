// Ranges out of known distributions, and calibration of whole models.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/onnx/writer.h"
#include "superstep/op/window/pooling.h"
#include "superstep/run/serve/byte_errors.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "tests/contains.h"
#include "tests/cpu_kernels/support/assumed_pair_rate.h"
#include "tests/expect_error.h"
#include "tests/processor.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep::run {
namespace {

std::vector<float> normal_values(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random.normal()));
  return values;
}

RangeHistogram histogram_of(const std::vector<float>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  RangeHistogram histogram(static_cast<double>(low), static_cast<double>(high));
  histogram.add(values);
  return histogram;
}

TEST(RangeHistogram, CountsEveryElement) {
  RangeHistogram histogram(0, 2048);
  histogram.add(std::vector<float>{0, 0.5f, 1, 2047.5f, 2048, 5000, -3});
  EXPECT_EQ(histogram.count(), 7u);
  EXPECT_EQ(histogram.bins()[0], 3u);  // 0, 0.5 and what lies below
  EXPECT_EQ(histogram.bins()[1], 1u);
  EXPECT_EQ(histogram.bins()[2047], 3u);  // the top, its edge, and what lies above
}

TEST(RangeHistogram, MinmaxKeepsAll) {
  const RangeHistogram histogram = histogram_of({-3, 1, 7});
  EXPECT_EQ(histogram.range(RangeMethod::minmax, 0).low, -3);
  EXPECT_EQ(histogram.range(RangeMethod::minmax, 0).high, 7);
}

// Of a normal distribution 1 % lie beyond 2.326 standard deviations on either side.
TEST(RangeHistogram, PercentileOfANormalDistribution) {
  const auto range = histogram_of(normal_values(400000, 1)).range(RangeMethod::percentile, 0.98);
  EXPECT_NEAR(range.low, -2.326, 0.03);
  EXPECT_NEAR(range.high, 2.326, 0.03);
}

TEST(RangeHistogram, PercentileLeavesTheShareInside) {
  const std::vector<float> values = normal_values(50000, 2);
  for (const double share : {0.9, 0.99, 0.999}) {
    const auto range = histogram_of(values).range(RangeMethod::percentile, share);
    double inside = 0;
    for (const float value : values)
      inside += static_cast<double>(value) >= range.low && static_cast<double>(value) <= range.high;
    EXPECT_GE(inside / 50000, share);
    EXPECT_LT(inside / 50000, share + 0.01);
  }
}

// One element in fifty thousand, thirty standard deviations out: keeping it would cost most levels.
TEST(RangeHistogram, EntropyCutsAnOutlierOff) {
  std::vector<float> values = normal_values(50000, 3);
  values.push_back(30);
  const auto range = histogram_of(values).range(RangeMethod::entropy, 0);
  EXPECT_LT(range.high, 12);
  EXPECT_GT(range.high, 2);
  EXPECT_EQ(histogram_of(values).range(RangeMethod::minmax, 0).high, 30);
}

TEST(RangeHistogram, EntropyKeepsAnEvenDistribution) {
  RandomStream random(4);
  std::vector<float> values;
  for (int i = 0; i < 200000; ++i) values.push_back(static_cast<float>(random.uniform(0, 6)));
  EXPECT_GT(histogram_of(values).range(RangeMethod::entropy, 0).high, 5.5);
}

TEST(RangeHistogram, ConstantsHaveARange) {
  for (const RangeMethod method : {RangeMethod::minmax, RangeMethod::percentile, RangeMethod::entropy}) {
    const auto range = histogram_of({2, 2, 2}).range(method, 0.99);
    EXPECT_EQ(range.low, 2);
    EXPECT_EQ(range.high, 2);
  }
}

TEST(RangeHistogram, RefusesRangesThatAreNone) {
  EXPECT_THROW(RangeHistogram(1, 0), Error);
  EXPECT_THROW(RangeHistogram(0, INFINITY), Error);
}

TEST(RangeMethod, KnowsItsNames) {
  for (const RangeMethod method : {RangeMethod::minmax, RangeMethod::percentile, RangeMethod::entropy})
    EXPECT_EQ(range_method_from_name(name_of(method)), method);
  try {
    range_method_from_name("entropi");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "did you mean 'entropy'?"));
  }
}

graph::Graph network(std::int64_t batch) { return test::attention_network(batch, 32); }

void fill_random(std::int64_t first, std::span<Tensor> inputs) {
  inputs[0] = test::random_tensor(ElementType::f32, inputs[0].shape(), static_cast<std::uint64_t>(first) + 1);
}

QuantizedModel quantize_network(const CalibrateSettings& settings, FillSamples fill) {
  return quantize_model(target::find_target("cpu"), network, {}, settings, fill);
}

TEST(Calibrate, FindsTheRangeOfEveryValue) {
  const auto ranges = calibrate(target::find_target("cpu"), network,
                                {.samples = 128, .method = RangeMethod::minmax, .products = {}}, fill_random);
  const graph::Graph graph = network(1);
  EXPECT_EQ(ranges.size(), transform::values_to_calibrate(graph).size());
  EXPECT_GE(ranges.size(), 3u);
  for (const auto& [name, range] : ranges) EXPECT_LT(range.low, range.high) << name;
}

TEST(Calibrate, AgreesWithTheReference) {
  const CalibrateSettings settings{.samples = 8, .method = RangeMethod::minmax, .products = {}};
  const auto cpu = calibrate(target::find_target("cpu"), network, settings, fill_random);
  const auto reference = calibrate(target::find_target("reference"), network, settings, fill_random);
  for (const auto& [name, range] : reference) {
    EXPECT_NEAR(cpu.at(name).low, range.low, 1e-4) << name;
    EXPECT_NEAR(cpu.at(name).high, range.high, 1e-4) << name;
  }
}

TEST(Calibrate, TakesTheWeightsItIsGiven) {
  const graph::Graph graph = network(1);
  std::map<std::string, Tensor> zeros;
  for (graph::ValueId id : graph.states())
    zeros[graph.value(id).name] = Tensor(ElementType::f32, graph.type(id).shape);
  const QuantizedModel model = quantize_model(target::find_target("cpu"), network, zeros,
                                              {.samples = 16, .products = {}}, fill_random);
  for (const auto& [name, range] : model.ranges) EXPECT_EQ(range.high, 0) << name;
}

// Which samples are looked at: whole batches in order, twice, and not the rest that fills none.
TEST(Calibrate, LooksAtWholeBatchesInOrderTwice) {
  std::vector<std::int64_t> firsts;
  const auto fill = [&](std::int64_t first, std::span<Tensor> inputs) {
    EXPECT_EQ(inputs[0].shape()[0], 8);
    firsts.push_back(first);
    fill_random(first, inputs);
  };
  calibrate(target::find_target("cpu"), network, {.samples = 30, .batch = 8, .products = {}}, fill);
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 8, 16, 0, 8, 16}));
  firsts.clear();
  calibrate(target::find_target("cpu"), network, {.samples = 8, .batch = 64, .products = {}}, fill);
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 0})) << "fewer samples than a batch are one batch";
}

// The range of what a product reads is that of the input itself, in every method.
TEST(Calibrate, RangesHaveTheirClosedForm) {
  const auto product = [](std::int64_t batch) {
    graph::Graph graph("product");
    op::Builder b(graph);
    test::Layers layers(b, 3);
    b.output("y", layers.dense(b.input("x", ElementType::f32, {batch, 32}), "dense", 32));
    return graph;
  };
  // 16 runs of 2 samples: every value of -3, -3 + 1/128, ... once.
  constexpr std::int64_t values = 16 * 2 * 32;
  const auto fill = [](std::int64_t first, std::span<Tensor> inputs) {
    for (std::int64_t i = 0; i < 64; ++i) inputs[0].set(i, -3 + static_cast<double>(first * 32 + i) / 128);
  };
  const auto range_of = [&](RangeMethod method, double share) {
    const auto ranges =
        calibrate(target::find_target("cpu"), product,
                  {.samples = 32, .method = method, .share = share, .batch = 2, .products = {}}, fill);
    return ranges.at("x");
  };
  const double highest = -3 + (values - 1) / 128.0, bin = (highest + 3) / 2048;
  EXPECT_EQ(range_of(RangeMethod::minmax, 0).low, -3);
  EXPECT_EQ(range_of(RangeMethod::minmax, 0).high, highest);
  // A tenth of an even distribution on either side is a tenth of the range.
  const auto inner = range_of(RangeMethod::percentile, 0.8);
  EXPECT_NEAR(inner.low, -3 + 0.1 * (highest + 3), 3 * bin);
  EXPECT_NEAR(inner.high, highest - 0.1 * (highest + 3), 3 * bin);
}

// Of an image the channels are those of its second axis, of rows those of the last.
TEST(Calibrate, FindsTheMeanOfEveryChannel) {
  const auto products = [](std::int64_t batch) {
    graph::Graph graph("products");
    op::Builder b(graph);
    test::Layers layers(b, 3);
    const op::Var weights = b.state("weight", test::random_tensor(ElementType::f32, {32, 16}, 5));
    b.output("y", op::matmul(b.input("rows", ElementType::f32, {batch, 3, 32}), weights));
    b.output("z", layers.conv(b.input("image", ElementType::f32, {batch, 16, 5, 4}), "conv", 16, 3));
    return graph;
  };
  // Channel c of sample s is 10 c + s, and one more at every other element of it.
  const auto fill = [](std::int64_t first, std::span<Tensor> inputs) {
    for (std::int64_t i = 0; i < inputs[0].element_count(); ++i)
      inputs[0].set(i, static_cast<double>(i % 32 * 10 + first + i / 96));
    for (std::int64_t i = 0; i < inputs[1].element_count(); ++i)
      inputs[1].set(i, static_cast<double>(i / 20 % 16 * 10 + first + i / 320 + i % 2));
  };
  const auto ranges =
      calibrate(target::find_target("cpu"), products, {.samples = 8, .batch = 2, .products = {}}, fill);
  const auto &rows = ranges.at("rows").means, &image = ranges.at("image").means;
  ASSERT_EQ(rows.size(), 32u);
  ASSERT_EQ(image.size(), 16u);
  for (std::size_t c = 0; c < 32; ++c) EXPECT_NEAR(rows[c], 10.0 * static_cast<double>(c) + 3.5, 1e-9);
  for (std::size_t c = 0; c < 16; ++c) EXPECT_NEAR(image[c], 10.0 * static_cast<double>(c) + 4, 1e-9);
}

TEST(Calibrate, AnyNumberOfThreadsFindsTheSame) {
  const auto found = [](int threads) {
    return calibrate(target::find_target("cpu"), network, {.samples = 32, .threads = threads, .products = {}},
                     fill_random);
  };
  const auto one = found(1), two = found(2);
  for (const auto& [name, range] : one) {
    EXPECT_EQ(two.at(name).low, range.low) << name;
    EXPECT_EQ(two.at(name).high, range.high) << name;
    EXPECT_EQ(two.at(name).means, range.means) << name;
  }
}

TEST(Calibrate, HearsAStop) {
  request_interrupt();
  expect_error(ErrorCode::interrupted, {"stopped while calibrating"}, [] {
    calibrate(target::find_target("cpu"), network, {.samples = 8, .products = {}}, fill_random);
  });
  clear_interrupt();
}

// Bytes are for the model as a target computes it fastest: on the cpu target the attention sums ten columns
// instead of 32 channels, too few for bytes, and what is left is near the f32 model as it was written.
TEST(Calibrate, QuantisesWhatTheTargetMakesOfTheModel) {
  const CalibrateSettings settings{.samples = 16, .method = RangeMethod::minmax, .products = {}};
  const auto on = [&](const char* target) {
    return quantize_model(target::find_target(target), network, {}, settings, fill_random);
  };
  const QuantizedModel composed = on("cpu"), written = on("reference");
  if (!test::multiplies_bytes_by_fours()) {
    EXPECT_LT(composed.products, written.products);
    EXPECT_FALSE(composed.slow.empty());
    EXPECT_GE(written.products, 2U);
    return;
  }
  EXPECT_GE(composed.products, 2u);
  EXPECT_LT(composed.products, written.products);
  constexpr std::int64_t batch = 8;
  const auto run = [](const target::GraphAtBatch& model) {
    test::Runner runner("reference", model, {.batch = batch});
    runner.run();
    return runner.outputs[0];
  };
  const Tensor f32 = run(network), bytes = run(composed.graph);
  double span = 0, error = 0;
  for (std::int64_t i = 0; i < f32.element_count(); ++i) {
    span = std::max(span, std::abs(f32.at(i) - f32.at(0)));
    error = std::max(error, std::abs(bytes.at(i) - f32.at(i)));
  }
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.2 * span);
}

// What does nothing in inference stands between no neighbours: the pool hands bytes on.
TEST(Calibrate, DropoutPartsNoNeighbours) {
  const auto model = [](std::int64_t batch) {
    graph::Graph graph("pooled");
    op::Builder b(graph);
    test::Layers layers(b, 3);
    const op::Var x = b.input("x", ElementType::f32, {batch, 16, 8, 8});
    const op::Var y = op::relu(layers.conv(x, "first", 16, 3, {.pads = {1, 1, 1, 1}}));
    const op::Var pooled = op::max_pool(y, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
    b.output("y", layers.conv(b.node1("Dropout", {pooled}), "second", 16, 3));
    return graph;
  };
  const QuantizedModel quantized = quantize_model(target::find_target("reference"), model, {},
                                                  {.samples = 8, .products = {}}, fill_random);
  const graph::Graph graph = quantized.graph(2);
  int pools = 0;
  for (const graph::Node& node : graph.nodes())
    if (node.op == "MaxPool") pools += graph.type(node.inputs[0]).element == ElementType::u8;
  EXPECT_EQ(pools, 1);
}

// Two products of the same 32 numbers. What the second reads has one number a thousand times too large, which
// its weights leave out: bytes that span it say nothing of the others.
graph::Graph one_coarse_product(std::int64_t batch) {
  graph::Graph graph("coarse");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = b.input("x", ElementType::f32, {batch, 32});
  Tensor widened = Tensor::full(ElementType::f32, {32}, 1), weights(ElementType::f32, {32, 16});
  widened.set(0, 1000);
  for (std::int64_t i = 16; i < weights.element_count(); ++i) weights.set(i, i % 7 - 3.0);
  b.output("y", layers.dense(x, "fine", 16) +
                    op::matmul(x * b.constant(widened), b.constant(weights, "coarse.weight")));
  return graph;
}

TEST(Calibrate, LeavesInF32WhatBytesAreTooCoarseFor) {
  const target::Target& target = target::find_target("reference");
  CalibrateSettings settings{.samples = 64, .method = RangeMethod::minmax, .products = {}};
  const auto quantized = [&](double most_error) {
    settings.most_error = most_error;
    return quantize_model(target, one_coarse_product, {}, settings, fill_random);
  };
  const ByteErrors errors(target, one_coarse_product, settings, fill_random);
  EXPECT_EQ(errors.of(one_coarse_product), 0);
  const QuantizedModel all = quantized(0), some = quantized(0.02), none = quantized(1e-9);
  EXPECT_EQ(all.products, 2U);
  EXPECT_TRUE(all.coarse.empty());
  EXPECT_GT(errors.of(all.graph), 0.5);
  ASSERT_EQ(some.coarse.size(), 1U);
  EXPECT_EQ(some.products, 1U);
  EXPECT_NEAR(some.coarse[0].error, errors.of(all.graph), 0.05);
  EXPECT_LE(errors.of(some.graph), 0.02);
  EXPECT_GT(errors.of(some.graph), 0);
  EXPECT_EQ(none.coarse.size(), 2U);
  EXPECT_EQ(none.products, 0U);
  EXPECT_EQ(errors.of(none.graph), 0);
}

// A layer that is faster in bf16 than on bytes is in bf16, unless the bound asks for more than that has.
TEST(Calibrate, LeavesInF32WhatBf16IsTooCoarseFor) {
  const kernels::AssumedPairRate fast(kernels::PairRate::fast);
  if (!kernels::multiplies_pairs_fast()) GTEST_SKIP() << "this processor multiplies no pairs";
  const auto model = [](std::int64_t batch) {
    graph::Graph graph("wide");
    op::Builder b(graph);
    test::Layers layers(b, 3);
    const op::Var x = b.input("x", ElementType::f32, {batch, 256, 32, 32});
    b.output("y", layers.conv(x, "wide", 256, 3, {.pads = {1, 1, 1, 1}}));
    return graph;
  };
  const auto type_read = [&](double most_error) {
    const QuantizedModel quantized = quantize_model(
        target::find_target("cpu"), model, {},
        {.samples = 1, .products = {.beside_bf16 = true}, .most_error = most_error}, fill_random);
    const graph::Graph graph = quantized.graph(1);
    for (const graph::Node& node : graph.nodes())
      if (node.op == "Conv") return graph.type(node.inputs[0]).element;
    return ElementType::u8;
  };
  EXPECT_EQ(type_read(0), ElementType::bf16);
  EXPECT_EQ(type_read(0.2), ElementType::bf16);
  EXPECT_EQ(type_read(1e-7), ElementType::f32);
}

TEST(Calibrate, MakesAModelForAnOnnxFile) {
  const QuantizedModel model = quantize_model(target::find_target("reference"), network, {},
                                              {.samples = 16, .products = {}}, fill_random);
  EXPECT_GE(model.products, 4u);
  EXPECT_GE(model.kept, 3u);  // the first convolution, the attention's own products, the narrow layers
  const std::string file = onnx::to_onnx(model.graph, {.opset = 21, .producer_version = ""});
  for (const char* op : {"QuantizeLinear", "ConvInteger", "MatMulInteger", "DequantizeLinear"})
    EXPECT_NE(file.find(op), std::string::npos) << op;
}

TEST(Calibrate, RefusesWrongUse) {
  const auto message = [](auto&& body) {
    try {
      body();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was wrong");
  };
  EXPECT_TRUE(contains(message([] { quantize_network({.samples = 0, .products = {}}, fill_random); }),
                       "at least one sample"));
  const auto broken = [](std::int64_t, std::span<Tensor> inputs) {
    inputs[0] = Tensor::full(ElementType::f32, inputs[0].shape(), NAN);
  };
  EXPECT_TRUE(contains(message([&] { quantize_network({.samples = 4, .products = {}}, broken); }),
                       "on the calibration samples"));
  const auto no_products = [](std::int64_t batch) {
    graph::Graph graph("relu");
    op::Builder b(graph);
    b.output("y", op::relu(b.input("x", ElementType::f32, {batch, 16})));
    return graph;
  };
  EXPECT_TRUE(contains(message([&] {
                         quantize_model(target::find_target("cpu"), no_products, {},
                                        {.samples = 4, .products = {}}, fill_random);
                       }),
                       "no product or convolution that gains"));
}

}  // namespace
}  // namespace superstep::run
