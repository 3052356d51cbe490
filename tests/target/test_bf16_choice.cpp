// Which products of a model stay in f32: where pairs of bf16 are multiplied in f32, and where they are fast.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/op/elementwise/activation.h"
#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/target.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "tests/cpu_kernels/support/assumed_pair_rate.h"
#include "tests/target/models.h"

namespace superstep::target {
namespace {

using kernels::AssumedPairRate;
using kernels::PairRate;

// A second-level cache of this size while it lives.
struct AssumedCache {
  explicit AssumedCache(std::int64_t bytes) { kernels::assumed_second_level_cache = bytes; }
  ~AssumedCache() { kernels::assumed_second_level_cache = 0; }
};

// Layers one behind the other, of `widths` columns each.
graph::Graph layers_of(std::int64_t rows, const std::vector<std::int64_t>& widths) {
  graph::Graph graph("layers");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  op::Var x = b.input("x", ElementType::f32, {rows, widths[0]});
  for (std::size_t i = 1; i < widths.size(); ++i)
    x = op::relu(layers.dense(x, "layer" + std::to_string(i), widths[i]));
  b.output("y", x);
  return graph;
}

graph::Graph convolutions(std::int64_t side) {
  graph::Graph graph("convolutions");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  op::Var x = b.input("x", ElementType::f32, {1, 32, side, side});
  for (const char* name : {"first", "second"}) x = op::relu(layers.conv(x, name, 32, 3));
  b.output("y", x);
  return graph;
}

std::size_t kept(const graph::Graph& model, const char* target = "cpu") {
  return find_target(target).slow_in_bf16(model, {}).size();
}

TEST(Bf16Choice, WhatLiesInTheCacheStaysInF32WherePairsAreSlow) {
  const AssumedCache cache(1 << 20);
  const graph::Graph dense = layers_of(64, {128, 128, 64, 128}), images = convolutions(16);
  {
    const AssumedPairRate slow(PairRate::slow);
    EXPECT_EQ(kept(dense), 3u);
    EXPECT_EQ(kept(images), 2u);
    EXPECT_EQ(kept(dense, "reference"), 0u);
  }
  const AssumedPairRate fast(PairRate::fast);
  if (!kernels::multiplies_pairs_fast()) GTEST_SKIP() << "this processor multiplies no pairs";
  EXPECT_EQ(kept(dense), 0u);
  EXPECT_EQ(kept(images), 0u);
}

// Half the bytes of activations that no cache holds are worth their conversion.
TEST(Bf16Choice, WhatDoesNotFitTheCacheIsInBf16) {
  const AssumedPairRate slow(PairRate::slow);
  const AssumedCache cache(1 << 20);
  EXPECT_EQ(kept(layers_of(8192, {256, 256, 256})), 0u);
  EXPECT_EQ(kept(layers_of(64, {256, 256, 256})), 2u);
}

// So are those of weights that are read for few rows.
TEST(Bf16Choice, WeightsOfFewRowsAreInBf16) {
  const AssumedPairRate slow(PairRate::slow);
  const AssumedCache cache(1 << 20);
  EXPECT_EQ(kept(layers_of(1, {1024, 1024, 1024})), 0u);
  EXPECT_EQ(kept(layers_of(1, {128, 128, 128})), 2u) << "weights that stay in the cache";
}

// A product that gains nothing between two that gain is converted for nowhere.
TEST(Bf16Choice, CountsWhatConversionsBetweenProductsCost) {
  const AssumedPairRate slow(PairRate::slow);
  const AssumedCache cache(16 << 20);
  const auto alone = layers_of(16384, {32, 32});
  EXPECT_EQ(kept(alone), 1u);
  // 16,384 rows of 512 are 32 MB, of 32 they are 2: the narrow layer lies among the wide ones' results.
  const auto among = layers_of(16384, {512, 512, 32, 32, 512, 512});
  EXPECT_EQ(kept(among), 0u);
}

std::size_t kept_in_training(const graph::Graph& model) {
  return find_target("cpu").slow_in_bf16(model, {.trained = true}).size();
}

// Where pairs are fast what they save grows with both widths, what rounding costs with their sum.
TEST(Bf16Choice, NarrowLayersThatAreTrainedStayInF32) {
  const AssumedPairRate fast(PairRate::fast);
  if (!kernels::multiplies_pairs_fast()) GTEST_SKIP() << "this processor multiplies no pairs";
  EXPECT_EQ(kept_in_training(layers_of(4096, {16, 16, 32})), 2u);
  EXPECT_EQ(kept_in_training(layers_of(4096, {256, 256, 64, 64})), 0u);
  EXPECT_EQ(kept_in_training(layers_of(64, {64, 64, 64, 64})), 0u);
  EXPECT_EQ(kept_in_training(convolutions(16)), 0u);
}

// A few rows times many that are made in the run: packing these takes longer than the product.
TEST(Bf16Choice, ProductsOfFewRowsOfActivationsStayInF32) {
  const AssumedPairRate fast(PairRate::fast);
  if (!kernels::multiplies_pairs_fast()) GTEST_SKIP() << "this processor multiplies no pairs";
  const auto product = [](std::int64_t rows) {
    graph::Graph graph("product");
    op::Builder b(graph);
    const op::Var a = b.input("a", ElementType::f32, {64, rows, 128}),
                  c = b.input("c", ElementType::f32, {64, 128, 64});
    b.output("y", op::matmul(a, c));
    return graph;
  };
  for (const bool trained : {false, true}) {
    const auto count = [&](std::int64_t rows) {
      return find_target("cpu").slow_in_bf16(product(rows), {.trained = trained}).size();
    };
    EXPECT_EQ(count(4), 1u);
    EXPECT_EQ(count(128), 0u);
  }
}

TEST(Bf16Choice, WhatIsTrainedStaysInBf16WherePairsAreSlow) {
  const AssumedPairRate slow(PairRate::slow);
  EXPECT_EQ(kept_in_training(layers_of(64, {128, 128, 64, 128})), 0u);
}

TEST(Bf16Choice, TheModelIsComputedAsItWasChosen) {
  const AssumedCache cache(1 << 20);
  const graph::Graph model = layers_of(64, {128, 128, 64, 128});
  const auto casts = [&](PairRate rate) {
    const AssumedPairRate assumed(rate);
    graph::Graph graph = model;
    const auto pass = transform::autocast_pass(
        ElementType::bf16, false, [](const graph::Graph& of, const transform::AutocastOptions& options) {
          return find_target("cpu").slow_in_bf16(of, options);
        });
    const graph::Graph cast = transform::run_passes(std::move(graph), std::span(&pass, 1));
    return std::ranges::count(cast.nodes(), "Cast", &graph::Node::op);
  };
  EXPECT_EQ(casts(PairRate::slow), 0);
  const AssumedPairRate fast(PairRate::fast);
  if (kernels::multiplies_pairs_fast()) {
    EXPECT_GT(casts(PairRate::fast), 0);
  }
}

// x * sigmoid(x) with roundings to bf16 in between is the end of the product before it, no pass of its own.
TEST(Bf16Choice, ASwishIsTheEndOfItsProduct) {
  const auto model = [](std::int64_t batch) {
    graph::Graph graph("swish");
    op::Builder b(graph);
    test::Layers layers(b, 3);
    op::Var x = b.input("x", ElementType::f32, {batch, 32, 8, 8});
    for (const char* name : {"first", "second"}) {
      const op::Var y = layers.conv(x, name, 32, 1);
      x = y * op::sigmoid(y);
    }
    b.output("y", layers.conv(x, "last", 32, 1));
    return transform::autocast(graph, ElementType::bf16);
  };
  const auto executable = find_target("cpu").compile(model, {.batch = 2});
  int swishes = 0;
  for (const PlanStep& step : executable->summary().steps) {
    EXPECT_FALSE(step.op.starts_with("Sigmoid") || step.op.starts_with("Cast+Sigmoid")) << step.op;
    swishes += step.kernel.find("silu") != std::string::npos;
  }
  EXPECT_EQ(swishes, 2);
}

}  // namespace
}  // namespace superstep::target
