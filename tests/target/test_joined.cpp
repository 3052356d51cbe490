// Concatenations whose parts are written where they belong by the kernels that make them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/target/target.h"
#include "superstep/transform/training/training_step.h"
#include "tests/contains.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using test::expect_close;
using test::Runner;

// The shape of a U-Net's step: a skip connection of `skip` channels beside what was made smaller and larger
// again. The skip is pooled too, and read by its activation's gradient.
graph::Graph step_of_a_u_net(std::int64_t batch, std::int64_t skip, std::int64_t raised) {
  graph::Graph graph("joined");
  op::Builder b(graph);
  test::Layers layers(b, 31);
  const op::Var x = b.input("x", ElementType::f32, {batch, 3, 8, 8});
  const op::Var first = op::relu(layers.conv(x, "first", skip, 3, {.pads = {1, 1, 1, 1}}));
  const op::Var small = op::max_pool(first, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  const op::Var deep = op::leaky_relu(layers.conv(small, "deep", 16, 3, {.pads = {1, 1, 1, 1}}));
  const op::Var weight = layers.parameter("raise.weight", {16, raised, 2, 2}, 64);
  const op::Var up = op::conv_transpose(deep, weight, {}, {{.strides = {2, 2}}});
  const op::Var joined = op::concat(std::vector<op::Var>{up, first}, 1);
  const op::Var last = op::relu(layers.conv(joined, "last", 16, 3, {.pads = {1, 1, 1, 1}}));
  b.output("y", layers.conv(last, "out", 2, 1));
  return graph;
}

struct Channels {
  std::int64_t skip, raised;
  std::size_t copies;  // of parts: steps of the plan
};

// What was raised is read by the join alone: where all parts are whole lines of cache, only the skip is
// copied.
constexpr Channels cases[] = {{16, 16, 1}, {32, 16, 1}, {16, 32, 1}, {24, 16, 2}, {8, 24, 2}, {24, 24, 2}};

TEST(Joined, InfersAsTheReferenceDoes) {
  for (const Channels& channels : cases)
    for (const std::int64_t micro_batch : {1, 2, 4}) {
      const auto model = [&](std::int64_t batch) {
        return step_of_a_u_net(batch, channels.skip, channels.raised);
      };
      Runner cpu("cpu", model, {.batch = 4, .micro_batch = micro_batch, .threads = 2});
      Runner reference("reference", model, {.batch = 4});
      EXPECT_EQ(cpu.count("Concat"), channels.copies) << channels.skip << " " << channels.raised;
      cpu.executable->run(cpu.inputs, cpu.outputs);
      reference.executable->run(reference.inputs, reference.outputs);
      expect_close(cpu.outputs[0], reference.outputs[0], 3e-5, std::to_string(channels.skip));
    }
}

TEST(Joined, TrainsAsTheReferenceDoes) {
  for (const Channels& channels : cases) {
    const auto model = [&](std::int64_t batch) {
      return transform::make_training_step(step_of_a_u_net(batch, channels.skip, channels.raised),
                                           {{transform::LossTerm{}}},
                                           {.kind = transform::OptimizerKind::sgd, .momentum = 0.9});
    };
    Runner cpu("cpu", model, {.batch = 2, .micro_batch = 2});
    Runner reference("reference", model, {.batch = 2});
    EXPECT_EQ(cpu.count("Concat"), channels.copies) << channels.skip << " " << channels.raised;
    for (int i = 0; i < 2; ++i) {
      cpu.executable->run(cpu.inputs, cpu.outputs);
      reference.executable->run(reference.inputs, reference.outputs);
    }
    for (const std::string& name : cpu.executable->state_names())
      expect_close(cpu.executable->state(name), reference.executable->state(name), 1e-3, name);
  }
}

}  // namespace
}  // namespace superstep
