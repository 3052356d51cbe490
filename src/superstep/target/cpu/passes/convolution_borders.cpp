#include "superstep/target/cpu/passes/convolution_borders.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
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

// A product of a value and one number.
struct Scaled {
  ValueId value;
  double factor;
};

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

// What the convolution reads, as such a product that nobody else reads.
std::optional<Scaled> scaled_input(const Graph& graph, const Node& node, const std::vector<int>& uses) {
  if (node.op != "Conv") return std::nullopt;
  const ValueId x = node.inputs[0], weights = node.inputs[1];
  const graph::Value &value = graph.value(x), &kernel = graph.value(weights);
  if (value.kind != ValueKind::computed || uses[x.index()] != 1 || value.type.element != ElementType::f32 ||
      kernel.type.element != ElementType::f32 || !is_parameter(graph, weights) ||
      kernel.type.shape.element_count() >= value.type.shape.element_count())
    return std::nullopt;
  const Node& product = producer_of(graph, x);
  if (product.op != "Mul") return std::nullopt;
  for (const std::size_t side : {0u, 1u}) {
    const auto factor = uniform_constant(graph, product.inputs[1 - side]);
    if (factor && is_moderate(*factor) && graph.type(product.inputs[side]) == value.type)
      return Scaled{product.inputs[side], *factor};
  }
  return std::nullopt;
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
  const std::vector<int> uses = graph.use_counts();
  return transform::prune(transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    const auto scaled = scaled_input(graph, node, uses);
    if (!scaled) return rewrite.keep(node);
    std::vector<Var> inputs = rewrite.now(node.inputs);
    inputs[0] = rewrite.now(scaled->value);
    inputs[1] = inputs[1] * scaled->factor;
    const Var y = rewrite.builder().node("Conv", inputs, node.attributes)[0];
    rewrite.replace(node, std::span(&y, 1));
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

}  // namespace superstep::target::cpu
