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
  try {
    expand_to_onnx(make_training_step(model(true), {}, {}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(),
                         "node 'drop' (superstep.RandomMask): the operator cannot be written in plain ONNX"));
  }
}

}  // namespace
}  // namespace superstep::transform
