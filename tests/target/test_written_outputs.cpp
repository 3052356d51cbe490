// Outputs that steps write where the caller wants them: which ones need no copy, and that nothing but time
// comes of it.
#include <gtest/gtest.h>

#include <cstring>

#include "superstep/op/rows/reduction.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using graph::Graph;
using op::Var;

// Values that several readers and outputs share, behind views and not.
Graph shared_outputs(std::int64_t batch) {
  Graph graph("outputs");
  op::Builder b(graph);
  test::Layers layers(b, 5);
  const Var x = b.input("x", ElementType::f32, {batch, 24});
  const Var h = op::tanh(layers.dense(x, "first", 32));
  b.output("h", h);                                                                 // read by others too
  b.output("again", h);                                                             // a second time
  b.output("square", op::reshape(h, {batch, 4, 8}));                                // a third time, as a view
  b.output("turned", op::transpose(op::reshape(h * h, {batch, 4, 8}), {0, 2, 1}));  // in another order
  b.output("y", op::reshape(layers.dense(h, "second", 12), {batch, 3, 4}));         // a view of all of it
  b.output("part", op::slice(h + 1.0, {0, 3}, {batch, 9}, {0, 1}));                 // a view of some of it
  b.output("x_again", x);
  return graph;
}

TEST(WrittenOutputs, AreCopiedOnlyWhereTheyHaveToBe) {
  test::Runner runner("cpu", shared_outputs, {.batch = 6, .micro_batch = 6});
  EXPECT_EQ(runner.count("copy"), 5u);  // again, square, turned, part, x_again
}

TEST(WrittenOutputs, AreWhatTheReferenceGives) {
  for (const target::CompileOptions& options : {target::CompileOptions{.batch = 6},
                                                {.batch = 6, .micro_batch = 1},
                                                {.batch = 6, .micro_batch = 2, .threads = 3}}) {
    test::Runner expected("reference", shared_outputs, {.batch = 6}), actual("cpu", shared_outputs, options);
    expected.run();
    for (int run = 0; run < 2; ++run) actual.run();
    for (std::size_t i = 0; i < expected.outputs.size(); ++i)
      test::expect_close(actual.outputs[i], expected.outputs[i], 1e-5,
                         expected.executable->outputs()[i].name);
  }
}

// What one output wrote is no input of the next run: other memory each time.
TEST(WrittenOutputs, GoWhereTheCallerWantsThemEachTime) {
  test::Runner runner("cpu", shared_outputs, {.batch = 4});
  runner.run();
  std::vector<Tensor> others = test::outputs_of(*runner.executable);
  runner.executable->run(runner.inputs, others);
  for (std::size_t i = 0; i < others.size(); ++i) {
    ASSERT_NE(others[i].bytes(), runner.outputs[i].bytes());
    EXPECT_EQ(std::memcmp(others[i].bytes(), runner.outputs[i].bytes(), others[i].byte_count()), 0) << i;
  }
}

// A sum over all of x, added to each element: written over x it would spoil what is still to be read.
TEST(WrittenOutputs, MayLieOverAnInput) {
  const auto model = [](std::int64_t batch) {
    Graph graph("over");
    op::Builder b(graph);
    const Var x = b.input("x", ElementType::f32, {batch, 64});
    const Var y = op::relu(x) + 1.0;
    b.output("y", y);
    b.output("z", y * op::reduce_sum(x, {1}, true));
    return graph;
  };
  test::Runner apart("cpu", model, {.batch = 8}), over("cpu", model, {.batch = 8});
  apart.run();
  over.outputs[0] = over.inputs[0];
  over.run();
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::memcmp(apart.outputs[i].bytes(), over.outputs[i].bytes(), apart.outputs[i].byte_count()),
              0)
        << i;
  EXPECT_EQ(over.outputs[0].bytes(), over.inputs[0].bytes());
}

}  // namespace
}  // namespace superstep
