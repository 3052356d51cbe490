#include "superstep/transform/transposed_convolution.h"

#include <algorithm>

#include "superstep/op/window/rearrange.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using op::Var;

bool is_stored(const Graph& graph, ValueId id) {
  const graph::ValueKind kind = graph.value(id).kind;
  return kind == graph::ValueKind::constant || kind == graph::ValueKind::state;
}

bool all_are(const std::vector<std::int64_t>& values, std::int64_t wanted) {
  return std::ranges::all_of(values, [&](std::int64_t value) { return value == wanted; });
}

// [in, out, block, block] as [block * block * out, in, 1, 1]: DepthToSpace has the block's positions outside.
Tensor pointwise_weights(const Tensor& stored) {
  const std::int64_t in = stored.shape()[0], out = stored.shape()[1],
                     taps = stored.shape()[2] * stored.shape()[3];
  Tensor result(stored.type(), {taps * out, in, 1, 1});
  for (std::int64_t i = 0; i < in; ++i)
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        result.set((tap * out + o) * in + i, stored.at((i * out + o) * taps + tap));
  return result;
}

Tensor repeated(const Tensor& bias, std::int64_t times) {
  const std::int64_t count = bias.element_count();
  Tensor result(bias.type(), {times * count});
  for (std::int64_t i = 0; i < times * count; ++i) result.set(i, bias.at(i % count));
  return result;
}

void expand(Rewrite& rewrite, const Node& node) {
  const Graph& old = rewrite.old();
  const graph::Value& weights = old.value(node.inputs[1]);
  const std::int64_t block = weights.data.shape()[2];
  std::vector<Var> inputs{rewrite.now(node.inputs[0]),
                          rewrite.builder().constant(pointwise_weights(weights.data), weights.name + ".1x1")};
  if (node.inputs.size() > 2 && node.inputs[2].valid())
    inputs.push_back(rewrite.builder().constant(repeated(old.value(node.inputs[2]).data, block * block)));
  const Var product = rewrite.builder().node("Conv", inputs, {}, 1)[0];
  rewrite.replace(node, std::vector{op::depth_to_space(product, block)});
}

}  // namespace

bool is_pointwise_transposed(const Graph& graph, const Node& node) {
  if (node.op != "ConvTranspose" || !is_stored(graph, node.inputs[1])) return false;
  if (node.inputs.size() > 2 && node.inputs[2].valid() && !is_stored(graph, node.inputs[2])) return false;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  if (weights.rank() != 4 || weights[2] != weights[3] || node.attributes.integer("group", 1) != 1)
    return false;
  const auto& a = node.attributes;
  return a.text("auto_pad", "NOTSET") == "NOTSET" && a.integers("output_shape", {}).empty() &&
         all_are(a.integers("pads", {}), 0) && all_are(a.integers("output_padding", {}), 0) &&
         all_are(a.integers("dilations", {}), 1) && all_are(a.integers("strides", {1, 1}), weights[2]);
}

Graph expand_transposed(const Graph& graph, FunctionRef<bool(const Node&)> wanted) {
  return rewrite(graph, [&](Rewrite& now, const Node& node) {
    is_pointwise_transposed(graph, node) && wanted(node) ? expand(now, node) : now.keep(node);
  });
}

}  // namespace superstep::transform
