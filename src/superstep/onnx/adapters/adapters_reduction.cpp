// Reductions and softmax: axes as attributes, softmax over all axes from one on.
#include "superstep/onnx/adapters/adapters.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

std::vector<Var> reduce_axes(NodeImport& node) {
  node.inputs.resize(1);
  if (!node.attributes.has("axes")) return node.pass();
  const std::vector<std::int64_t> axes = node.take_integers("axes");
  if (!axes.empty()) node.set_input(1, node.emitter.integers(axes));
  return node.pass();
}

// Before operator set 13: over everything from the axis on, taken as one axis.
std::vector<Var> flattened_softmax(NodeImport& node) {
  const Var x = node.input(0);
  const Shape shape = x.shape();
  if (shape.rank() == 0) return node.pass();
  const std::int64_t given = node.take_integer("axis", 1);
  const int axis = given == shape.rank() ? shape.rank() : op::checked_axis(given, shape.rank());
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : inner) *= shape[i];
  node.attributes.set("axis", std::int64_t{-1});
  if (axis == shape.rank() - 1) return node.pass();
  node.inputs[0] = node.emitter.reshape(x, {outer, inner});
  return {node.emitter.reshape(node.pass()[0], shape)};
}

constexpr std::int64_t oldest = 1;

constexpr Adapter table[] = {
    {"ReduceSum", oldest, 12, reduce_axes},       {"ReduceMean", oldest, 17, reduce_axes},
    {"ReduceMax", oldest, 17, reduce_axes},       {"ReduceMin", oldest, 17, reduce_axes},
    {"ReduceProd", oldest, 17, reduce_axes},      {"ReduceL1", oldest, 17, reduce_axes},
    {"ReduceL2", oldest, 17, reduce_axes},        {"ReduceLogSum", oldest, 17, reduce_axes},
    {"ReduceLogSumExp", oldest, 17, reduce_axes}, {"ReduceSumSquare", oldest, 17, reduce_axes},
    {"Softmax", oldest, 12, flattened_softmax},   {"LogSoftmax", oldest, 12, flattened_softmax},
    {"Hardmax", oldest, 12, flattened_softmax},
};

}  // namespace

std::span<const Adapter> reduction_adapters() { return table; }

}  // namespace superstep::onnx
