// f16 on the CPU: values stored in it, arithmetic in f32, beside the reference evaluation of the same graph.
#include <gtest/gtest.h>

#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/passes/widen_half.h"
#include "superstep/transform/precision/precision.h"
#include "tests/target/run.h"

namespace superstep::test {
namespace {

using target::GraphAtBatch;

GraphAtBatch in_half(const GraphAtBatch& model) {
  return [model](std::int64_t batch) {
    return transform::autocast(model(batch), ElementType::f16, {.least_width = 1});
  };
}

double mean_distance(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) sum += std::abs(a.at(i) - b.at(i));
  return sum / static_cast<double>(a.element_count());
}

// Both round every value of f16 to 11 bits, but sums in another order round otherwise now and then. A plan
// that left the rounding out would be as far from the reference as f32 is.
TEST(Half, ModelsAreRoundedAsTheReferenceRoundsThem) {
  for (const Case& test : models()) {
    Runner cpu("cpu", in_half(test.model), {.batch = 8, .micro_batch = 4, .threads = 2});
    Runner reference("reference", in_half(test.model), {.batch = 8}), wide("cpu", test.model, {.batch = 8});
    for (Runner* runner : {&cpu, &reference, &wide}) runner->run();
    expect_close(cpu.outputs[0], reference.outputs[0], 2e-3, test.name);
    const double distance = mean_distance(cpu.outputs[0], reference.outputs[0]),
                 rounding = mean_distance(wide.outputs[0], reference.outputs[0]);
    EXPECT_GT(rounding, 0) << test.name;
    EXPECT_LT(distance, rounding / 20) << test.name;
  }
}

// Without the conversions products of f16 go to the reference evaluation.
TEST(Half, NoProductIsLeftToTheReference) {
  for (const Case& test : models()) {
    const Runner cpu("cpu", in_half(test.model), {.batch = 4});
    for (const target::PlanStep& step : cpu.executable->summary().steps)
      EXPECT_NE(step.kernel, "reference evaluation") << test.name << ": " << step.op;
  }
}

TEST(Half, GraphsWithoutItStayAsTheyAre) {
  const graph::Graph graph = models()[0].model(2);
  EXPECT_EQ(graph.node_count(), target::cpu::widen_half(graph).node_count());
}

// An operator made of others, as files of f16 have it, computes in f32 as a whole.
TEST(Half, AFileOfHalfPrecisionIsServedWithItsNormalisationFolded) {
  const GraphAtBatch model = [](std::int64_t batch) {
    graph::Graph graph;
    op::Builder b(graph);
    const op::Var x = b.input("x", ElementType::f16, {batch, 3, 8, 8});
    const auto state = [&](const char* name, Shape shape, std::uint64_t seed) {
      return b.state(name, random_tensor(ElementType::f16, std::move(shape), seed));
    };
    const op::Var y = op::conv(x, state("w", {16, 3, 3, 3}, 1), {}, {.pads = {1, 1, 1, 1}});
    const op::Var variance = b.state("variance", Tensor::full(ElementType::f16, {16}, 0.5));
    b.output("y", op::relu(b.node1("BatchNormalization", {y, state("scale", {16}, 2), state("shift", {16}, 3),
                                                          state("mean", {16}, 4), variance})));
    return graph;
  };
  Runner cpu("cpu", model, {.batch = 2}), reference("reference", model, {.batch = 2});
  cpu.run();
  reference.run();
  expect_close(cpu.outputs[0], reference.outputs[0], 4e-3, "y");
  for (const target::PlanStep& step : cpu.executable->summary().steps) {
    EXPECT_NE(step.kernel, "reference evaluation") << step.op;
    EXPECT_EQ(std::string::npos, step.op.find("Mul")) << step.op;
  }
}

}  // namespace
}  // namespace superstep::test
