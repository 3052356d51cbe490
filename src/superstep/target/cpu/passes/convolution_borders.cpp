#include "superstep/target/cpu/passes/convolution_borders.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/target/cpu/passes/linear_sums.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/target/cpu/plan/planar.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::ValueKind;
using op::Var;
using transform::Rewrite;

// Binary exponents of a factor, at most: products of larger ones with weights or pixels would leave the range
// of f32 sooner than the other order does.
constexpr int largest_exponent = 32;

// A state, a constant, or made of such alone.
bool is_parameter(const Graph& graph, ValueId id) {
  const graph::Value& value = graph.value(id);
  if (value.kind != ValueKind::computed) return value.kind != ValueKind::input;
  const Node& node = graph.node(value.producer);
  return !op::get(node.op).has_effects && std::ranges::all_of(node.inputs, [&](ValueId input) {
    return !input.valid() || is_parameter(graph, input);
  });
}

bool is_moderate(double factor) {
  return std::isfinite(factor) && factor != 0 && std::abs(std::ilogb(factor)) <= largest_exponent;
}

bool is_weight_gradient(const Node& node) {
  return op::traits_of(node.op).product_kind == op::ProductKind::weight_gradient;
}

// Whether the factor of what the node reads first may go into the weights, or behind their gradient: these
// are fewer.
bool takes_factor(const Graph& graph, const Node& node) {
  if (node.op != "Conv" && !is_weight_gradient(node)) return false;
  const graph::ValueType& x = graph.type(node.inputs[0]);
  const ValueId weights = is_weight_gradient(node) ? node.outputs[0] : node.inputs[1];
  const graph::ValueType& kernel = graph.type(weights);
  if (x.element != ElementType::f32 || kernel.element != ElementType::f32 ||
      kernel.shape.element_count() >= x.shape.element_count())
    return false;
  return is_weight_gradient(node) ? node.inputs[1] != node.inputs[0] : is_parameter(graph, weights);
}

// By value: how often such nodes read it first.
std::vector<int> reads_by_convolutions(const Graph& graph) {
  std::vector<int> reads(graph.value_count(), 0);
  for (const Node& node : graph.nodes())
    if (takes_factor(graph, node)) ++reads[node.inputs[0].index()];
  return reads;
}

// What the node reads, as a product with one number that nobody else reads than its like.
std::optional<Scaled> scaled_input(const Graph& graph, const Node& node, const std::vector<int>& uses,
                                   const std::vector<int>& by_convolutions) {
  if (!takes_factor(graph, node)) return std::nullopt;
  const ValueId x = node.inputs[0];
  if (graph.value(x).kind != ValueKind::computed || uses[x.index()] != by_convolutions[x.index()])
    return std::nullopt;
  const auto found = scaled_by_number(graph, producer_of(graph, x));
  return found && is_moderate(found->factor) ? found : std::nullopt;
}

// The values of which a concatenation along the channels, which is read once, is made; none where the value
// is no such.
std::vector<ValueId> joined_channels(const Graph& graph, ValueId id, const std::vector<int>& uses) {
  const graph::Value& value = graph.value(id);
  if (value.kind != ValueKind::computed || uses[id.index()] != 1) return {};
  const Node& node = graph.node(value.producer);
  if (node.op != "Concat" || normalize_axis(node.attributes.integer("axis", 0), value.type.shape.rank()) != 1)
    return {};
  return {node.inputs.begin(), node.inputs.end()};
}

void take_apart(Rewrite& rewrite, const Node& node, const std::vector<ValueId>& cotangents) {
  std::vector<Var> parts;
  for (const ValueId cotangent : cotangents) {
    const std::vector<Var> inputs{rewrite.now(node.inputs[0]), rewrite.now(cotangent)};
    parts.push_back(rewrite.builder().node(node.op, inputs, node.attributes)[0]);
  }
  const Var whole = op::concat(parts, 0);
  rewrite.replace(node, std::span(&whole, 1));
}

// The convolution of which the split deals out the channels; null where there is none.
const Node* dealt_out(const Graph& graph, const Node& split, const std::vector<int>& uses,
                      const std::vector<bool>& planar) {
  if (split.op != "Split") return nullptr;
  const graph::Value& whole = graph.value(split.inputs[0]);
  if (whole.kind != ValueKind::computed || !planar[whole.producer.index()] ||
      uses[split.inputs[0].index()] != 1 ||
      normalize_axis(split.attributes.integer("axis", 0), whole.type.shape.rank()) != 1)
    return nullptr;
  for (ValueId part : split.outputs)
    if (!part.valid()) return nullptr;
  return &graph.node(whole.producer);
}

void deal_out(Rewrite& rewrite, const Node& split, const Node& convolution) {
  const std::vector<Var> in = rewrite.now(convolution.inputs);
  std::vector<std::int64_t> channels;
  for (ValueId part : split.outputs) channels.push_back(rewrite.old().type(part).shape[1]);
  const std::vector<Var> weights = op::split(in[1], 0, channels);
  const bool biased = in.size() > 2 && in[2].valid();
  const std::vector<Var> biases = biased ? op::split(in[2], 0, channels) : std::vector<Var>();
  std::vector<Var> parts;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    std::vector<Var> inputs{in[0], weights[i]};
    if (biased) inputs.push_back(biases[i]);
    parts.push_back(rewrite.builder().node("Conv", inputs, convolution.attributes)[0]);
  }
  rewrite.replace(split, parts);
}

}  // namespace

Graph scale_weights(const Graph& graph) {
  const std::vector<int> uses = graph.use_counts(), by_convolutions = reads_by_convolutions(graph);
  return transform::prune(transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    const auto scaled = scaled_input(graph, node, uses, by_convolutions);
    if (!scaled) return rewrite.keep(node);
    std::vector<Var> inputs = rewrite.now(node.inputs);
    inputs[0] = rewrite.now(scaled->value);
    const bool gradient = is_weight_gradient(node);
    if (!gradient) inputs[1] = inputs[1] * scaled->factor;
    Var result = rewrite.builder().node(node.op, inputs, node.attributes)[0];
    if (gradient) result = result * scaled->factor;
    rewrite.replace(node, std::span(&result, 1));
  }));
}

Graph split_convolutions(const Graph& graph) {
  const std::vector<int> uses = graph.use_counts();
  const std::vector<bool> planar = may_be_planar(graph);
  return transform::prune(transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    if (const Node* convolution = dealt_out(graph, node, uses, planar))
      deal_out(rewrite, node, *convolution);
    else
      rewrite.keep(node);
  }));
}

Graph split_weight_gradients(const Graph& graph) {
  const std::vector<int> uses = graph.use_counts();
  const std::vector<bool> planar = may_be_planar(graph);
  std::size_t index = 0;
  return transform::prune(transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    const bool fits = planar[index++] && is_weight_gradient(node);
    const std::vector<ValueId> joined =
        fits ? joined_channels(graph, node.inputs[1], uses) : std::vector<ValueId>();
    if (joined.empty()) return rewrite.keep(node);
    take_apart(rewrite, node, joined);
  }));
}

}  // namespace superstep::target::cpu
