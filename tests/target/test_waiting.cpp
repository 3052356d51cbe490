// What the lowering puts off until somebody reads it: zeros that most kernels need not have, and groups that
// run together with their reader. Whoever reads them otherwise finds them.
#include <gtest/gtest.h>

#include <array>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using test::expect_close;
using test::Runner;

// Zeros of fewer bytes are folded to a constant, which is always there.
constexpr std::int64_t width = 512;

// Query, key and value out of one product, as PyTorch's MultiheadAttention is exported: the gradient of each
// is rows added to zeros, in a tensor whose order is not the row-major one that the kernel wants.
graph::Graph packed(std::int64_t batch) {
  graph::Graph graph("packed");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var all = layers.dense(b.input("x", ElementType::f32, {batch, 8}), "packed", 3 * width);
  const op::Var apart = op::transpose(op::reshape(all, {batch, 3, width}), {1, 0, 2});
  const auto part = [&](std::int64_t i) {
    return op::gather(apart, b.constant(Tensor::scalar<std::int64_t>(i)), 0);
  };
  b.output("y", part(0) * part(1) + part(2));
  return graph;
}

// Elements chosen along an axis that is not the last.
graph::Graph chosen(std::int64_t batch) {
  graph::Graph graph("chosen");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var all = layers.dense(b.input("x", ElementType::f32, {batch, 8}), "all", width);
  const op::Var at = b.input("ids", ElementType::i64, {batch, 3, width / 4});
  b.output("y", op::gather_elements(op::reshape(all, {batch, 4, width / 4}), at, 1));
  return graph;
}

void expect_steps_as_the_reference(graph::Graph (*model)(std::int64_t)) {
  const target::GraphAtBatch training = [=](std::int64_t batch) {
    return transform::make_training_step(model(batch), {{transform::LossTerm{}}},
                                         {.kind = transform::OptimizerKind::sgd, .momentum = 0.9});
  };
  for (const std::int64_t batch : {4, 1}) {
    Runner cpu("cpu", training, {.batch = batch, .micro_batch = batch, .threads = 2});
    Runner reference("reference", training, {.batch = batch});
    for (auto* inputs : {&cpu.inputs, &reference.inputs})
      for (Tensor& tensor : *inputs)
        if (tensor.type() == ElementType::i64)
          for (std::int64_t i = 0; i < tensor.element_count(); ++i)
            tensor.set(i, static_cast<double>(i * 7 % 4));
    for (int i = 0; i < 2; ++i) {
      cpu.run();
      reference.run();
      expect_close(cpu.outputs[0], reference.outputs[0], 1e-4, "loss");
    }
    for (const std::string& name : cpu.executable->state_names())
      expect_close(cpu.executable->state(name), reference.executable->state(name), 1e-3, name);
  }
}

TEST(Waiting, ZerosAreMadeForWhoeverReadsThem) {
  expect_steps_as_the_reference(packed);
  expect_steps_as_the_reference(chosen);
}

// Zeros that nothing but an output reads, beside rows that are added to them by a kernel that need not.
TEST(Waiting, ZerosThatAreAnOutput) {
  const target::GraphAtBatch model = [](std::int64_t batch) {
    graph::Graph graph("zeros");
    op::Builder b(graph);
    const op::Var x = b.input("x", ElementType::f32, {batch, width});
    const op::Var zeros = op::constant_of_shape(b, ElementType::f32, {3, width});
    const op::Var row = b.constant(Tensor::scalar<std::int64_t>(1));
    b.output("y", x + op::gather(zeros, row, 0));
    b.output("zeros", zeros);
    return graph;
  };
  Runner cpu("cpu", model, {.batch = 2, .micro_batch = 2});
  cpu.outputs[1].set(0, 7);
  cpu.run();
  for (std::int64_t i = 0; i < cpu.outputs[1].element_count(); ++i) ASSERT_EQ(cpu.outputs[1].at(i), 0) << i;
  for (std::int64_t i = 0; i < 2 * width; ++i) ASSERT_EQ(cpu.outputs[0].at(i), cpu.inputs[0].at(i)) << i;
}

}  // namespace
}  // namespace superstep
