#include "superstep/op/elementwise/random.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/window/pooling.h"
#include "superstep/transform/expand.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

Graph model(bool dropout) {
  Graph graph;
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {2, 1, 6, 6});
  const Var w = b.state("w", random_tensor(ElementType::f32, {3, 1, 3, 3}, 3));
  const Var h = op::max_pool(op::conv(x, w), {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  b.set_name("drop");
  b.output("y", dropout ? b.node1("Dropout", {h, b.scalar(ElementType::f32, 0.5)}) : h);
  return graph;
}

bool is_plain_onnx(const Graph& graph) {
  return std::ranges::none_of(graph.nodes(),
                              [](const graph::Node& node) { return node.op.starts_with("superstep."); });
}

TEST(Expand, WritesATrainingStepInPlainOnnx) {
  for (OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
    const Graph step = make_training_step(model(false), {}, {.kind = kind, .weight_decay = 0.1});
    EXPECT_FALSE(is_plain_onnx(step));
    const Graph plain = verified(expand_to_onnx(step));
    EXPECT_TRUE(is_plain_onnx(plain));
    expect_same_results(step, plain, 1e-5);
  }
}

TEST(Expand, NamesWhatItCannotWrite) {
  Graph graph;
  Builder b(graph);
  const Var counter = b.state("counter", Tensor::scalar<std::int64_t>(0));
  b.set_name("directions");
  b.output("y", op::random_normal(counter, ElementType::f32, {3}, 1, 0));
  try {
    expand_to_onnx(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(
        contains(error.what(),
                 "node 'directions' (superstep.RandomNormal): the operator cannot be written in plain ONNX"));
  }
}

// The masks of a step with two dropouts, as outputs, from a graph that has them in plain ONNX.
std::vector<Tensor> masks_in_plain_onnx(double ratio, ElementType element, std::int64_t many) {
  Graph graph;
  Builder b(graph);
  const Var counter = b.state("counter", Tensor::scalar<std::int64_t>(0));
  for (std::uint32_t stream : {0u, 1u})
    b.output("mask" + std::to_string(stream),
             op::random_mask(counter, element, {4, many}, {7, stream, 1 - ratio}));
  const Graph plain = verified(expand_to_onnx(graph));
  EXPECT_TRUE(is_plain_onnx(plain));
  return op::evaluate(plain, {}).outputs;
}

TEST(Expand, DropsOutAtTheRateAndScalesWhatIsKept) {
  constexpr std::int64_t many = 10000;
  for (const ElementType element : {ElementType::f32, ElementType::f64, ElementType::bf16})
    for (const double ratio : {0.1, 0.5}) {
      const std::vector<Tensor> masks = masks_in_plain_onnx(ratio, element, many);
      std::int64_t dropped = 0, apart = 0;
      for (std::int64_t i = 0; i < 4 * many; ++i) {
        ASSERT_EQ(masks[0].type(), element);
        const double value = masks[0].at(i);
        if (value != 0) {
          ASSERT_NEAR(value, 1 / (1 - ratio), element == ElementType::bf16 ? 4e-3 : 1e-6);
        }
        dropped += value == 0, apart += (value == 0) != (masks[1].at(i) == 0);
      }
      const double deviation = std::sqrt(4 * many * ratio * (1 - ratio));
      EXPECT_NEAR(static_cast<double>(dropped), 4 * many * ratio, 4 * deviation) << ratio;
      EXPECT_NEAR(static_cast<double>(apart), 8 * many * ratio * (1 - ratio), 8 * deviation) << ratio;
    }
}

// Forwards and backwards share a mask: drawn twice, gradients would be those of another network.
TEST(Expand, ATrainingStepDrawsAMaskOnce) {
  const Graph step = make_training_step(model(true), {}, {});
  const Graph plain = verified(expand_to_onnx(step));
  EXPECT_TRUE(is_plain_onnx(plain));
  EXPECT_EQ(count_of(step, "superstep.RandomMask"), 1);
  EXPECT_EQ(count_of(plain, "RandomUniform"), 1);
}

}  // namespace
}  // namespace superstep::transform
