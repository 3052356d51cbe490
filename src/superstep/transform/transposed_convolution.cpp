#include "superstep/transform/transposed_convolution.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "superstep/op/core/definition.h"
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

bool has_bias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2].valid(); }

// Along one axis.
struct Axis {
  std::int64_t taps, stride, dilation, pad;

  // What tap k reads for position r of a block: at q + this; none where it has no part in that position.
  std::optional<std::int64_t> source(std::int64_t r, std::int64_t k) const {
    const std::int64_t at = r + pad - k * dilation;
    return at % stride == 0 ? std::optional(at / stride) : std::nullopt;
  }
};

std::array<Axis, 2> axes_of(const Graph& graph, const Node& node) {
  const Shape& weights = graph.type(node.inputs[1]).shape;
  const auto strides = node.attributes.integers("strides", {1, 1}),
             dilations = node.attributes.integers("dilations", {1, 1}),
             pads = node.attributes.integers("pads", {0, 0, 0, 0});
  return {Axis{weights[2], strides[0], dilations[0], pads[0]},
          Axis{weights[3], strides[1], dilations[1], pads[1]}};
}

// Does the operator have two dimensions and numbers for all that it leaves open?
bool is_plain(const Graph& graph, const Node& node) {
  if (node.op != "ConvTranspose" || !is_stored(graph, node.inputs[1])) return false;
  if (has_bias(node) && !is_stored(graph, node.inputs[2])) return false;
  const auto& a = node.attributes;
  if (graph.type(node.inputs[1]).shape.rank() != 4 || a.integer("group", 1) != 1) return false;
  return a.text("auto_pad", "NOTSET") == "NOTSET" && a.integers("output_shape", {}).empty();
}

// [in, out, height, width] as [block * block * out, in, taps...]: DepthToSpace has the block's positions
// outside.
Tensor block_weights(const Tensor& stored, const BlockConvolution& to, const std::array<Axis, 2>& axes) {
  const Shape& shape = stored.shape();
  const std::int64_t in = shape[0], out = shape[1], positions = to.block * to.block;
  Tensor result(stored.type(), {positions * out, in, to.taps[0], to.taps[1]});
  std::fill_n(result.bytes(), result.byte_count(), std::byte{0});
  const auto place = [&](std::int64_t position, std::int64_t down, std::int64_t across, std::int64_t from) {
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o)
        result.set((((position * out + o) * in + i) * to.taps[0] + down) * to.taps[1] + across,
                   stored.at((i * out + o) * axes[0].taps * axes[1].taps + from));
  };
  for (std::int64_t position = 0; position < positions; ++position)
    for (std::int64_t tap = 0; tap < axes[0].taps * axes[1].taps; ++tap) {
      const auto down = axes[0].source(position / to.block, tap / axes[1].taps),
                 across = axes[1].source(position % to.block, tap % axes[1].taps);
      if (down && across) place(position, *down + to.before[0], *across + to.before[1], tap);
    }
  return result;
}

Tensor repeated(const Tensor& bias, std::int64_t times) {
  const std::int64_t count = bias.element_count();
  Tensor result(bias.type(), {times * count});
  for (std::int64_t i = 0; i < times * count; ++i) result.set(i, bias.at(i % count));
  return result;
}

class Expansion {
 public:
  Expansion(const Graph& graph, FunctionRef<bool(const Node&)> wanted)
      : graph_(graph), wanted_(wanted), uses_(graph.use_counts()) {}

  void visit(Rewrite& rewrite, const Node& node) {
    if (const auto to = as_block_convolution(graph_, node); to && wanted_(node))
      return place(rewrite, node, product(rewrite, node, *to), to->block);
    const auto unmoved = node.inputs.empty() ? unmoved_.end() : unmoved_.find(node.inputs[0]);
    if (unmoved == unmoved_.end() || !may_go_ahead(node)) return rewrite.keep(node);
    const auto [value, block] = unmoved->second;
    place(rewrite, node, rewrite.builder().node1(node.op, {value}, node.attributes), block);
  }

 private:
  // What has not been moved yet, and to blocks of which stride it will be.
  struct Unmoved {
    Var value;
    std::int64_t block;
  };

  // Element by element, of this alone: the same before and behind the move.
  bool may_go_ahead(const Node& node) const {
    return op::traits_of(node.op).elementwise && node.inputs.size() == 1 && node.outputs.size() == 1 &&
           uses_[node.inputs[0].index()] == 1;
  }

  // What moves it in front of an operator that goes ahead itself is read by nobody then.
  void place(Rewrite& rewrite, const Node& node, Var value, std::int64_t block) {
    if (block == 1) return rewrite.replace(node, std::vector{value});
    unmoved_[node.outputs[0]] = {value, block};
    rewrite.replace(node, std::vector{op::depth_to_space(value, block)});
  }

  Var product(Rewrite& rewrite, const Node& node, const BlockConvolution& to) const {
    const graph::Value& weights = graph_.value(node.inputs[1]);
    op::Builder& b = rewrite.builder();
    std::vector<Var> inputs{
        rewrite.now(node.inputs[0]),
        b.constant(block_weights(weights.data, to, axes_of(graph_, node)), weights.name + ".blocks")};
    if (has_bias(node))
      inputs.push_back(b.constant(repeated(graph_.value(node.inputs[2]).data, to.block * to.block)));
    graph::Attributes attributes;
    attributes.set("pads", std::vector{to.before[0], to.before[1], to.behind[0], to.behind[1]});
    return b.node("Conv", inputs, attributes, 1)[0];
  }

  const Graph& graph_;
  FunctionRef<bool(const Node&)> wanted_;
  std::vector<int> uses_;               // by value
  std::map<ValueId, Unmoved> unmoved_;  // by the value that it is when it has been moved
};

}  // namespace

std::optional<BlockConvolution> as_block_convolution(const Graph& graph, const Node& node) {
  if (!is_plain(graph, node)) return std::nullopt;
  const std::array<Axis, 2> axes = axes_of(graph, node);
  if (axes[0].stride != axes[1].stride) return std::nullopt;
  const Shape &x = graph.type(node.inputs[0]).shape, &y = graph.type(node.outputs[0]).shape;
  BlockConvolution to{.block = axes[0].stride, .taps = {}, .before = {}, .behind = {}};
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), highest = -lowest;
    for (std::int64_t r = 0; r < to.block; ++r)
      for (std::int64_t k = 0; k < axes[i].taps; ++k)
        if (const auto at = axes[i].source(r, k))
          lowest = std::min(lowest, *at), highest = std::max(highest, *at);
    const int axis = static_cast<int>(i) + 2;
    if (lowest > 0 || highest < 0 || y[axis] != to.block * x[axis]) return std::nullopt;
    to.taps[i] = highest - lowest + 1, to.before[i] = -lowest, to.behind[i] = highest;
  }
  return to;
}

bool is_pointwise_transposed(const Graph& graph, const Node& node) {
  const auto to = as_block_convolution(graph, node);
  return to && to->taps == std::array<std::int64_t, 2>{1, 1};
}

Graph expand_transposed(const Graph& graph, FunctionRef<bool(const Node&)> wanted) {
  Expansion expansion(graph, wanted);
  return prune(rewrite(graph, [&](Rewrite& now, const Node& node) { expansion.visit(now, node); }));
}

}  // namespace superstep::transform
