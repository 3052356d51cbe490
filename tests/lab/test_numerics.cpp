// Causes that were planted into small networks, and whether they are found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "superstep/lab/numerics/node_differences.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/rows/reduction.h"
#include "tests/target/models.h"

namespace superstep::lab {
namespace {

using op::Var;

constexpr std::int64_t width = 192, layer_count = 6;
constexpr double largest_scale = 0x1p13;

// Dense layers; each with a normalization by its root mean square, and a passage through small numbers. The
// first sample can be silent before every normalization.
graph::Graph network(std::int64_t batch, bool with_silence) {
  graph::Graph graph("planted");
  op::Builder b(graph);
  test::Layers layers(b, 31);
  Var y = b.input("x", ElementType::f32, {batch, width});
  Tensor loud = Tensor::full(ElementType::f32, {batch, 1}, 1);
  if (with_silence) loud.set(0, 0);
  const Var heard = b.constant(loud);
  for (std::int64_t i = 0; i < layer_count; ++i) {
    y = op::relu(layers.dense(y, fmt::format("dense{}", i), width));
    op::NameScope scope(b, fmt::format("small{}", i));
    y = y * (1 / largest_scale);
    b.set_name(fmt::format("large{}", i));
    y = op::relu(y) * largest_scale * heard;
    b.set_name(fmt::format("square{}", i));
    const Var mean = op::reduce_mean(y * y, {1}, true);
    b.set_name(fmt::format("epsilon{}", i));
    const Var kept = mean + 1e-7;
    b.set_name(fmt::format("scale{}", i));
    y = y / op::sqrt(kept);
  }
  b.output("y", y);
  return graph;
}

NodeDifferences found(const std::string& of, const std::string& with, bool with_silence) {
  constexpr std::int64_t batch = 4;
  return node_differences([&](std::int64_t n) { return network(n, with_silence); },
                          {.batch = batch,
                           .threads = 2,
                           .of = target::numerics::parse_spec(of),
                           .with = target::numerics::parse_spec(with)},
                          {test::random_tensor(ElementType::f32, {batch, width}, 5)});
}

std::string culprit_of(const NodeDifferences& differences) {
  return differences.found() ? differences.nodes[differences.culprit].name : "nobody";
}

// As much is gone as where the node is in the first arithmetic altogether.
bool cured_by(const NodeDifferences& differences, const std::string& setting) {
  for (const Cure& cure : differences.cures)
    if (cure.setting == setting) return cure.difference <= 1.1 * differences.cures.back().difference;
  return false;
}

// All layers round their results to f16; one of them adds in f16, too.
TEST(PlantedCauses, sums_in_f16_are_found_in_every_layer) {
  for (std::int64_t i = 0; i < layer_count; ++i) {
    const NodeDifferences d = found("f32", fmt::format("f16;dense{}=16.16:chunk=1", i), false);
    EXPECT_EQ(fmt::format("dense{}", i), culprit_of(d));
  }
}

// What is added against a division by zero is less than the least number of a type: silence becomes NaN.
TEST(PlantedCauses, a_broken_epsilon_is_found_in_every_layer) {
  for (std::int64_t i = 0; i < layer_count; ++i) {
    const NodeDifferences d = found("f32", fmt::format("bf16;epsilon{}=f16:subnormals=flushed", i), true);
    EXPECT_EQ(fmt::format("epsilon{}", i), culprit_of(d));
    EXPECT_FALSE(std::isfinite(d.difference));
    EXPECT_TRUE(cured_by(d, "subnormals")) << i;
  }
}

// On the way through small numbers one layer loses all of them.
TEST(PlantedCauses, flushed_subnormals_are_found_in_every_layer) {
  for (std::int64_t i = 0; i < layer_count; ++i) {
    const NodeDifferences d = found("f32", fmt::format("f16;small{}=f16:subnormals=flushed", i), false);
    EXPECT_EQ(fmt::format("small{}", i), culprit_of(d));
    EXPECT_TRUE(cured_by(d, "subnormals")) << i;
  }
}

// In a convolutional network, with all layers in a short type.
TEST(PlantedCauses, a_layer_of_eight_bits_is_found_between_others) {
  const auto model = [](std::int64_t batch) { return test::pooled_network(batch); };
  for (const char* const name : {"conv1", "conv2"}) {
    const NodeDifferences d = node_differences(
        model,
        {.batch = 2,
         .threads = 2,
         .of = target::numerics::parse_spec("f32"),
         .with = target::numerics::parse_spec(fmt::format("gc200;{}=e5m2:results=f32", name))},
        {test::random_tensor(ElementType::f32, {2, 3, 12, 12}, 9)});
    EXPECT_EQ(name, culprit_of(d));
    EXPECT_TRUE(cured_by(d, "operands"));
  }
}

TEST(NodeDifferences, of_the_same_arithmetic_are_none) {
  const NodeDifferences d = found("gc200", "gc200", true);
  EXPECT_EQ(0, d.difference);
  EXPECT_EQ("nobody", culprit_of(d));
}

// What nodes make alone adds up, as independent roundings do, to what they make together.
TEST(NodeDifferences, have_shares_that_add_up) {
  NodeQuestion question{.batch = 4,
                        .threads = 2,
                        .of = target::numerics::parse_spec("f32"),
                        .with = target::numerics::parse_spec("f16"),
                        .least_share = 0};
  const NodeDifferences d = node_differences([](std::int64_t n) { return network(n, false); }, question,
                                             {test::random_tensor(ElementType::f32, {4, width}, 5)});
  double squares = 0, shares = 0;
  for (const NodeDifference& node : d.nodes)
    if (node.alone > 0) squares += node.alone * node.alone, shares += node.share;
  EXPECT_NEAR(1, shares, 1e-9);
  EXPECT_GT(std::sqrt(squares), 0.5 * d.difference);
  EXPECT_LT(std::sqrt(squares), 2 * d.difference);
}

}  // namespace
}  // namespace superstep::lab
