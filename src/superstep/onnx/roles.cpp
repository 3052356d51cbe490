#include "superstep/onnx/roles.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "superstep/op/core/definition.h"

namespace superstep::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using Values = std::set<ValueId>;

// Inputs that ONNX's operators take as weights where they are constants (kernels, scales, shifts, tables), as
// a bit set.
struct WeightInputs {
  std::string_view op;
  std::uint32_t inputs;
};
constexpr WeightInputs weight_inputs[] = {
    {"BatchNormalization", 0b110},
    {"Conv", 0b110},
    {"ConvTranspose", 0b110},
    {"DeformConv", 0b1010},
    {"Einsum", ~0u},
    {"GRU", 0b1110},
    {"Gather", 0b1},
    {"Gemm", 0b111},
    {"GroupNormalization", 0b110},
    {"InstanceNormalization", 0b110},
    {"LSTM", 0b10001110},
    {"LayerNormalization", 0b110},
    {"MatMul", 0b11},
    {"PRelu", 0b10},
    {"RMSNormalization", 0b10},
    {"RNN", 0b1110},
};

std::uint32_t weight_inputs_of(std::string_view op) {
  const auto found = std::ranges::find(weight_inputs, op, &WeightInputs::op);
  return found == std::end(weight_inputs) ? 0 : found->inputs;
}

constexpr std::size_t mean_input = 3;  // of BatchNormalization; the variance follows
// Steps from a scale back to the reduction that it is made of: the variance, epsilon, a root, a reciprocal,
// and casts and views between them.
constexpr int longest_deviation = 12;

// Gives the elements of its first input (of all inputs: Concat) in another place, shape or type, or rounded.
bool only_moves(const Node& node) {
  const op::Traits& traits = op::traits_of(node.op);
  return traits.view != op::View::none || traits.work == op::WorkKind::movement ||
         traits.work == op::WorkKind::view || node.op == "Cast" || node.op == "CastLike" ||
         node.op == "QuantizeLinear" || node.op == "DequantizeLinear";
}

// The inputs that a result is made of: of others it takes no more than a type or a shape.
std::span<const ValueId> contents(const Node& node) {
  const std::span<const ValueId> all = node.inputs;
  if (node.op == "CastLike") return all.first(1);
  return node.op == "Shape" || node.op == "Size" ? all.first(0) : all;
}

bool joins(const Node& node) { return op::get(node.op).max_inputs < 0; }

// Of a product with weights: elements of a feature share a place on this axis of the result.
int feature_axis(const Node& node, const Shape& result) {
  const op::ProductKind kind = op::traits_of(node.op).product_kind;
  const bool convolves =
      kind == op::ProductKind::convolution || kind == op::ProductKind::transposed_convolution;
  return convolves && result.rank() > 1 ? 1 : result.rank() - 1;
}

// At most one extent is not 1.
bool is_vector(const Shape& shape) {
  return std::ranges::count_if(shape.extents(), [](std::int64_t extent) { return extent != 1; }) <= 1;
}

class Roles {
 public:
  Roles(const Graph& graph, const Values& constants)
      : graph_(graph),
        constants_(constants),
        of_data_(graph.value_count(), false),
        readers_(graph.value_count()) {
    for (ValueId id : graph.inputs()) of_data_[id.index()] = !constants.contains(id);
    for (const Node& node : graph.nodes()) read(node);
  }

  Values weights() {
    for (const Node& node : graph_.nodes()) take_weights(node);
    // In the order of the nodes: a bias follows its product, a shift the scale of its normalisation.
    for (const Node& node : graph_.nodes()) {
      if (node.op == "Add") take_bias(node), take_places(node);
      if (node.op == "Mul") take_scale(node);
    }
    return std::move(weights_);
  }

 private:
  void read(const Node& node) {
    bool of_data = false;
    for (ValueId input : contents(node)) of_data = of_data || (input.valid() && of_data_[input.index()]);
    for (ValueId input : node.inputs)
      if (input.valid()) readers_[input.index()].push_back(&node);
    for (ValueId output : node.outputs)
      if (output.valid()) of_data_[output.index()] = of_data;
  }

  const Node* producer(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.kind == graph::ValueKind::computed ? &graph_.node(value.producer) : nullptr;
  }

  // The constants that a value is made of by moving alone.
  void collect(ValueId id, Values& found) const {
    std::vector<ValueId> open{id};
    Values seen;
    while (!open.empty()) {
      const ValueId at = open.back();
      open.pop_back();
      if (!seen.insert(at).second) continue;
      if (constants_.contains(at)) found.insert(at);
      const Node* node = producer(at);
      if (!node || !only_moves(*node)) continue;
      const std::size_t count = joins(*node) ? node->inputs.size() : 1;
      for (std::size_t i = 0; i < count; ++i)
        if (node->inputs[i].valid()) open.push_back(node->inputs[i]);
    }
  }

  // The value itself, or what it was before it was moved.
  ValueId before_moves(ValueId id) const {
    for (const Node* node = producer(id); node && only_moves(*node) && !joins(*node); node = producer(id))
      id = node->inputs[0];
    return id;
  }

  bool is_constant(ValueId id) const { return id.valid() && !of_data_[id.index()]; }

  void take_weights(const Node& node) {
    const std::uint32_t mask = weight_inputs_of(node.op);
    if (mask == 0 || is_looked_up_vector(node) || makes_waves(node)) return;
    Values found;
    for (std::size_t i = 0; i < std::min<std::size_t>(node.inputs.size(), 32); ++i)
      if ((mask >> i & 1u) != 0 && is_constant(node.inputs[i])) collect(node.inputs[i], found);
    if (!found.empty()) with_weights_.insert(&node);
    if (!found.empty() && op::traits_of(node.op).work == op::WorkKind::gather)
      embedded_.insert(node.outputs[0]);
    weights_.merge(found);
  }

  // A table of numbers that are looked up is a schedule; an embedding has a row for each.
  bool is_looked_up_vector(const Node& node) const {
    return op::traits_of(node.op).work == op::WorkKind::gather &&
           graph_.type(node.inputs[0]).shape.rank() < 2;
  }

  bool makes_waves(const Node& node) const {
    if (node.outputs.empty() || !node.outputs[0].valid()) return false;
    bool sine = false, cosine = false;
    std::vector<ValueId> open{node.outputs[0]};
    while (!open.empty()) {
      const ValueId at = open.back();
      open.pop_back();
      for (const Node* reader : readers_[at.index()]) {
        sine = sine || reader->op == "Sin";
        cosine = cosine || reader->op == "Cos";
        if (only_moves(*reader) && reader->outputs[0].valid()) open.push_back(reader->outputs[0]);
      }
    }
    return sine && cosine;
  }

  // Calls `each` with the constant operand and the other one, both ways round.
  template <class Each>
  void with_constant_operand(const Node& node, Each&& each) const {
    for (const int i : {0, 1}) {
      const ValueId constant = node.inputs[static_cast<std::size_t>(i)];
      const ValueId other = node.inputs[static_cast<std::size_t>(1 - i)];
      if (is_constant(constant) && !is_constant(other) && is_vector(graph_.type(constant).shape))
        each(constant, other);
    }
  }

  void take_bias(const Node& node) {
    with_constant_operand(node, [&](ValueId bias, ValueId other) {
      if (!is_bias_of_product(bias, other) && !scaled_.contains(before_moves(other))) return;
      collect(bias, weights_);
    });
  }

  // Positions and segments of tokens: what is added to embeddings.
  void take_places(const Node& node) {
    for (const std::size_t i : {0U, 1U}) {
      if (!embedded_.contains(before_moves(node.inputs[1 - i]))) continue;
      const Shape &places = graph_.type(node.inputs[i]).shape, &sum = graph_.type(node.outputs[0]).shape;
      const bool fits = places.rank() > 1 && places[places.rank() - 1] == sum[sum.rank() - 1];
      if (is_constant(node.inputs[i]) && fits) collect(node.inputs[i], weights_);
      embedded_.insert(node.outputs[0]);
    }
  }

  bool is_bias_of_product(ValueId bias, ValueId other) const {
    const ValueId result = before_moves(other);
    const Node* product = producer(result);
    if (!product || !with_weights_.contains(product) || !is_product(*product)) return false;
    const Shape& shape = graph_.type(result).shape;
    return shape.rank() > 0 &&
           graph_.type(bias).shape.element_count() == shape[feature_axis(*product, shape)];
  }

  static bool is_product(const Node& node) { return op::traits_of(node.op).work == op::WorkKind::product; }

  void take_scale(const Node& node) {
    with_constant_operand(node, [&](ValueId scale, ValueId other) {
      if (!is_normalised(before_moves(other)) || graph_.type(scale).shape.element_count() < 2) return;
      collect(scale, weights_);
      scaled_.insert(node.outputs[0]);
    });
  }

  // x / deviation(x), or x times what is one over it.
  bool is_normalised(ValueId id) const {
    const Node* node = producer(id);
    if (!node || !of_data_[id.index()]) return false;
    const bool normalises = op::traits_of(node->op).work == op::WorkKind::normalization;
    if (normalises && weight_inputs_of(node->op) != 0) return true;
    if (node->op == "Div") return is_deviation(node->inputs[1]);
    return node->op == "Mul" && (is_deviation(node->inputs[0]) || is_deviation(node->inputs[1]));
  }

  // A root, or one over it, of sums or means over the data.
  bool is_deviation(ValueId id) const {
    bool rooted = false;
    for (int step = 0; step < longest_deviation; ++step) {
      const Node* node = producer(id);
      if (!node || !of_data_[id.index()]) return false;
      const op::Folding folding = op::traits_of(node->op).folding;
      if (folding == op::Folding::root_of_squares) return true;
      if (folding != op::Folding::none) return rooted && folding != op::Folding::largest;
      rooted = rooted || node->op == "Sqrt" || node->op == "Pow";
      if (!only_moves(*node) && !op::traits_of(node->op).elementwise) return false;
      const auto of_data = [&](ValueId input) { return input.valid() && !is_constant(input); };
      if (std::ranges::count_if(contents(*node), of_data) != 1) return false;
      id = *std::ranges::find_if(contents(*node), of_data);
    }
    return false;
  }

  const Graph& graph_;
  const Values& constants_;
  std::vector<bool> of_data_;                      // by value: made of what the model is given
  std::vector<std::vector<const Node*>> readers_;  // by value
  Values weights_, scaled_, embedded_;             // scaled_: normalised, times a scale
  std::set<const Node*> with_weights_;
};

}  // namespace

std::set<ValueId> weights_of(const Graph& graph, const std::set<ValueId>& constants) {
  return Roles(graph, constants).weights();
}

std::set<ValueId> statistics_of(const Graph& graph, const std::set<ValueId>& constants) {
  std::set<ValueId> found;
  for (const Node& node : graph.nodes())
    for (std::size_t i = mean_input; node.op == "BatchNormalization" && i < node.inputs.size(); ++i)
      if (constants.contains(node.inputs[i])) found.insert(node.inputs[i]);
  return found;
}

}  // namespace superstep::onnx
