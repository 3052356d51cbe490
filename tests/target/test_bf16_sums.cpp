// Reductions whose results are bf16, as gradients in reduced precision have them.
#include <gtest/gtest.h>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/movement.h"
#include "tests/target/run.h"

namespace superstep::test {
namespace {

// Two readers, so that no conversion to f32 takes the result over.
target::GraphAtBatch reduced(const std::string& op, std::vector<std::int64_t> axes, bool transposed) {
  return [=](std::int64_t batch) {
    graph::Graph graph;
    op::Builder b(graph);
    op::Var x = op::cast(b.input("x", ElementType::f32, {batch, 5, 7, 6}), ElementType::bf16);
    if (transposed) x = op::transpose(x, {0, 3, 1, 2});
    const op::Var y = b.node1(op, {x, b.integers(axes)}, {{"keepdims", std::int64_t{0}}});
    b.output("y", op::cast(y, ElementType::f32));
    b.output("twice", op::cast(y + y, ElementType::f32));
    return graph;
  };
}

TEST(Bf16Sums, AreThoseOfTheReferenceAndHaveKernels) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax"})
    for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{3}, {2, 3}, {1}, {1, 3}})
      for (const bool transposed : {false, true}) {
        const auto model = reduced(op, axes, transposed);
        Runner cpu("cpu", model, {.batch = 8, .micro_batch = 4, .threads = 2}),
            reference("reference", model, {.batch = 8});
        cpu.run();
        reference.run();
        for (std::size_t i = 0; i < 2; ++i) expect_close(cpu.outputs[i], reference.outputs[i], 8e-3, op);
        for (const target::PlanStep& step : cpu.executable->summary().steps)
          EXPECT_NE(step.kernel, "reference evaluation") << op << ": " << step.op;
      }
}

}  // namespace
}  // namespace superstep::test
