// Weights of convolutions that are views of what is stored: turned, as exporters of channels-last networks
// write them, cut, cast, of a constant and of a state. Beside the reference evaluation.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/convolution.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using graph::Graph;
using op::Var;

struct WeightCase {
  std::string name;
  Shape stored;
  std::function<Var(Var)> view;  // into 6 x 4 x 3 x 3
};

std::vector<WeightCase> cases() {
  return {{"taps first",
           {3, 3, 4, 6},
           [](Var w) {
             return op::transpose(w, {3, 2, 0, 1});
           }},
          {"in first",
           {4, 6, 3, 3},
           [](Var w) {
             return op::transpose(w, {1, 0, 2, 3});
           }},
          {"taps turned",
           {6, 4, 3, 3},
           [](Var w) {
             return op::transpose(w, {0, 1, 3, 2});
           }},
          {"reshaped before",
           {9, 24},
           [](Var w) {
             return op::transpose(op::reshape(w, {3, 3, 4, 6}), {3, 2, 0, 1});
           }},
          {"cut out", {6, 7, 3, 3}, [](Var w) { return op::slice(w, {2}, {6}, {1}); }},
          {"cut in rows", {9, 4, 3, 3}, [](Var w) { return op::slice(w, {2}, {8}, {0}); }}};
}

target::GraphAtBatch convolution_of(const WeightCase& test, bool state, bool transposed) {
  return [=](std::int64_t batch) {
    Graph graph("model");
    op::Builder b(graph);
    Tensor values = test::random_tensor(ElementType::f32, test.stored, 11);
    const Var weights = test.view(state ? b.state("w", values) : b.constant(values));
    const Var x = b.input("x", ElementType::f32, Shape({batch, transposed ? 6 : 4, 9, 8}));
    b.output("y",
             transposed ? op::conv_transpose(x, weights) : op::conv(x, weights, {}, {.pads = {1, 1, 1, 1}}));
    return graph;
  };
}

TEST(WeightsThatAreViews, AreReadAsTheyLie) {
  for (const WeightCase& test : cases())
    for (const bool state : {false, true})
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(test.name + (state ? ", a state" : "") + (transposed ? ", transposed" : ""));
        const auto model = convolution_of(test, state, transposed);
        test::Runner expected("reference", model, {.batch = 3}), actual("cpu", model, {.batch = 3});
        expected.run();
        actual.run();
        test::expect_close(actual.outputs[0], expected.outputs[0], 1e-5, test.name);
      }
}

// What packs weights runs when it is asked for, not with the first samples; and again for weights that are
// set.
TEST(WeightsThatAreViews, AreReadyBeforeTheFirstRun) {
  const auto model = convolution_of(cases()[0], true, false);
  const auto packings = [](const target::Executable& executable) {
    const target::Timeline timeline = executable.timeline();
    return std::ranges::count_if(timeline.events, [&](const target::StepEvent& event) {
      return timeline.steps[event.step].part == target::PlanPart::prepare;
    });
  };
  test::Runner late("cpu", model, {.batch = 3, .measure_steps = true}),
      ready("cpu", model, {.batch = 3, .measure_steps = true});
  late.run();
  ASSERT_GT(packings(*late.executable), 0);
  ready.executable->make_ready();
  ready.run();
  EXPECT_EQ(packings(*ready.executable), 0);
  test::expect_close(ready.outputs[0], late.outputs[0], 0, "the same weights");
  const Tensor others = test::random_tensor(ElementType::f32, cases()[0].stored, 12);
  late.executable->set_state("w", others), ready.executable->set_state("w", others);
  ready.executable->make_ready();
  late.run(), ready.run();
  test::expect_close(ready.outputs[0], late.outputs[0], 0, "others");
}

}  // namespace
}  // namespace superstep
