#include "superstep/target/cpu/compose.h"

#include <algorithm>
#include <optional>

#include "superstep/op/arithmetic.h"
#include "superstep/op/cast.h"
#include "superstep/op/convolution.h"
#include "superstep/op/matmul.h"
#include "superstep/op/movement.h"
#include "superstep/op/view.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::ValueId;
using graph::ValueKind;
using op::Var;
using transform::Rewrite;

constexpr std::string_view weight_gradient = "superstep.ConvWeightGradient";

// Of the terms of a sum, those left must be this much fewer.
constexpr std::int64_t fewer_terms = 2;

bool is_pointwise(const op::ConvGeometry& geometry) {
  return geometry.group == 1 && std::ranges::all_of(geometry.windows, [](const op::Window& window) {
           return window.kernel == 1 && window.stride == 1 && window.pad_begin == 0 && window.pad_end == 0;
         });
}

// Weights [rows, the rest...] as a matrix.
Var as_matrix(Var weights) {
  const std::int64_t rows = weights.shape()[0];
  return op::reshape(weights, Shape{rows, weights.shape().element_count() / rows});
}

Var transposed(Var matrix) { return op::transpose(matrix, {1, 0}); }
Var as_row(Var vector) { return op::reshape(vector, Shape{1, vector.shape()[0]}); }
Var as_column(Var vector) { return op::reshape(vector, Shape{vector.shape()[0], 1}); }
Var in_f32(Var value) { return op::cast(value, ElementType::f32); }
Var sum_of(Var a, Var b) { return !a.valid() ? b : !b.valid() ? a : a + b; }

// What is known of a graph before it is rewritten.
class Findings {
 public:
  explicit Findings(const Graph& graph)
      : graph_(graph), uses_(graph.use_counts()), fixed_(graph.value_count()), readers_(graph.value_count()) {
    for (std::size_t i = 0; i < graph.value_count(); ++i)
      fixed_[i] = graph.values()[i].kind == ValueKind::state || graph.values()[i].kind == ValueKind::constant;
    for (const Node& node : graph.nodes()) {
      bool fixed = node.phase == Phase::forward && !op::get(node.op).has_effects;
      for (ValueId input : node.inputs) {
        if (!input.valid()) continue;
        fixed = fixed && fixed_[input.index()];
        readers_[input.index()].push_back(&node);
      }
      for (ValueId output : node.outputs)
        if (output.valid()) fixed_[output.index()] = fixed;
    }
    for (const graph::Output& output : graph.outputs()) readers_[output.value.index()].push_back(nullptr);
    for (const graph::Update& update : graph.updates()) readers_[update.next.index()].push_back(nullptr);
  }

  const Node* maker(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.kind == ValueKind::computed ? &graph_.node(value.producer) : nullptr;
  }
  // What conversions between floating-point types start from.
  ValueId behind_casts(ValueId id) const {
    const Node* node = maker(id);
    while (node && node->op == "Cast" && is_floating(graph_.type(node->inputs[0]).element)) {
      id = node->inputs[0];
      node = maker(id);
    }
    return id;
  }
  // Parameters, and what is made of them alone, in f32 but for conversions; left out counts too.
  bool is_parameter(const Node& node, std::size_t input) const {
    if (input >= node.inputs.size() || !node.inputs[input].valid()) return true;
    const ValueId source = behind_casts(node.inputs[input]);
    return fixed_[source.index()] && graph_.type(source).element == ElementType::f32;
  }
  bool is_read_once(ValueId id) const { return uses_[id.index()] == 1; }
  // The nodes that read it; null stands for an output or an update.
  const std::vector<const Node*>& readers(ValueId id) const { return readers_[id.index()]; }

  // Is it read by updates alone, but for conversions on the way?
  bool is_for_updates(ValueId id) const {
    return std::ranges::all_of(readers_[id.index()], [&](const Node* reader) {
      if (!reader) return false;
      return reader->phase == Phase::update || (reader->op == "Cast" && is_for_updates(reader->outputs[0]));
    });
  }

 private:
  const Graph& graph_;
  std::vector<int> uses_;
  std::vector<bool> fixed_;  // by value: the same whatever the inputs are
  std::vector<std::vector<const Node*>> readers_;
};

class Composer {
 public:
  explicit Composer(const Graph& graph) : old_(graph), found_(graph), rewrite_(graph) {}

  Graph run() {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    return rewrite_.finish();
  }

 private:
  void visit(const Node& node) {
    if (node.op == "Conv" && compose_forward(node)) return;
    if (node.op == weight_gradient && (compose_second(node) || compose_first(node))) return;
    if (node.op == "ReduceSum" && compose_bias(node)) return;
    if (node.op == "Cast" && is_moved(node.inputs[0])) return move(node);
    rewrite_.keep(node);
  }

  // ---- the second convolution, and its gradient by its weights

  bool gains(const Shape& first_weights) const {
    const std::int64_t channels = first_weights[0];
    return fewer_terms * (first_weights.element_count() / channels) <= channels;
  }

  // The convolution that makes what a convolution of one tap reads, where the two are worth composing.
  const Node* first_before(ValueId read) const {
    const Node* first = found_.maker(found_.behind_casts(read));
    if (!first || first->op != "Conv" || first->attributes.integer("group", 1) != 1) return nullptr;
    if (!found_.is_parameter(*first, 1) || !found_.is_parameter(*first, 2)) return nullptr;
    return gains(old_.type(first->inputs[1]).shape) ? first : nullptr;
  }

  // A parameter in f32; none where the node has none.
  Var parameter(const Node& node, std::size_t input) {
    if (input >= node.inputs.size() || !node.inputs[input].valid()) return {};
    return rewrite_.now(found_.behind_casts(node.inputs[input]));
  }

  bool compose_forward(const Node& node) {
    const Shape &x = old_.type(node.inputs[0]).shape, &w = old_.type(node.inputs[1]).shape;
    const Node* first = first_before(node.inputs[0]);
    if (!first || !found_.is_parameter(node, 1) || !found_.is_parameter(node, 2) ||
        !is_pointwise(op::conv_geometry(node.attributes, x, w)))
      return false;
    const Var w1 = parameter(*first, 1), b1 = parameter(*first, 2), matrix = as_matrix(parameter(node, 1));
    std::vector<std::int64_t> extents = w1.shape().extents();
    extents[0] = w[0];
    const Var weights = op::reshape(op::matmul(matrix, as_matrix(w1)), Shape(extents));
    const Var bias = sum_of(b1.valid() ? op::matmul(matrix, b1) : Var(), parameter(node, 2));
    const Var image = rewrite_.now(first->inputs[0]);
    const auto as_image = [&](Var value) { return value.valid() ? op::cast(value, image.element()) : value; };
    const Var y =
        rewrite_.builder().node1("Conv", {image, as_image(weights), as_image(bias)}, first->attributes);
    give(node, y);
    return true;
  }

  bool compose_second(const Node& node) {
    const Shape &x = old_.type(node.inputs[0]).shape, &w = old_.type(node.outputs[0]).shape;
    graph::Attributes attributes = node.attributes;
    attributes.erase("kernel_shape");
    const Node* first = first_before(node.inputs[0]);
    if (!first || !is_pointwise(op::conv_geometry(attributes, x, w))) return false;
    const Shape& window = old_.type(first->inputs[1]).shape;
    const Var image = rewrite_.now(first->inputs[0]), dy = rewrite_.now(node.inputs[1]);
    const Var g = in_f32(op::conv_weight_gradient(image, op::cast(dy, image.element()),
                                                  {window.begin() + 2, window.end()}, first->attributes));
    const Var w1 = parameter(*first, 1), b1 = parameter(*first, 2);
    const Var s = b1.valid() ? in_f32(sum_over_positions(dy)) : Var();
    begin_product(node);
    Var dw = op::matmul(as_matrix(g), transposed(as_matrix(w1)));
    if (b1.valid()) dw = dw + as_column(s) * as_row(b1);
    give(node, op::reshape(dw, w));
    return true;
  }

  // ---- the first convolution's gradients

  // dy as what convolutions of one tap send back, and the rest.
  struct Parts {
    std::vector<const Node*> pointwise;  // ConvTranspose
    std::vector<ValueId> rest;
  };

  void take_apart(ValueId id, Parts& parts) const {
    const Node* node = found_.maker(id);
    const bool read_once = found_.is_read_once(id);
    if (node && node->op == "Cast" && is_floating(old_.type(node->inputs[0]).element) && read_once)
      return take_apart(node->inputs[0], parts);
    const auto same_shape = [&](ValueId term) { return old_.type(term).shape == old_.type(id).shape; };
    if (node && node->op == "Add" && read_once && std::ranges::all_of(node->inputs, same_shape)) {
      for (ValueId term : node->inputs) take_apart(term, parts);
      return;
    }
    if (node && node->op == "ConvTranspose" && read_once && node->inputs.size() == 2 &&
        found_.is_parameter(*node, 1) && same_spatial(*node) &&
        is_pointwise(op::conv_transpose_geometry(node->attributes, old_.type(node->inputs[0]).shape,
                                                 old_.type(node->inputs[1]).shape)))
      parts.pointwise.push_back(node);
    else
      parts.rest.push_back(id);
  }
  bool same_spatial(const Node& node) const {
    const Shape &x = old_.type(node.inputs[0]).shape, &y = old_.type(node.outputs[0]).shape;
    return std::equal(x.begin() + 2, x.end(), y.begin() + 2, y.end());
  }

  // dy taken apart, where nothing but a convolution's gradients by its weights and bias reads it, and where
  // that gains; nothing otherwise.
  std::optional<Parts> parts_of(ValueId dy) const {
    bool found = false;
    for (const Node* reader : found_.readers(dy)) {
      if (!reader) return std::nullopt;
      if (reader->op == weight_gradient && reader->inputs[1] == dy && reader->inputs[0] != dy) {
        const Shape& weights = old_.type(reader->outputs[0]).shape;
        if (reader->attributes.integer("group", 1) != 1 || !gains(weights)) return std::nullopt;
        found = true;
      } else if (!sums_over_positions(*reader)) {
        return std::nullopt;
      }
    }
    if (!found) return std::nullopt;
    Parts parts;
    const Node* node = found_.maker(dy);
    if (!node || node->op != "Add") return std::nullopt;
    for (ValueId term : node->inputs) {
      if (old_.type(term).shape != old_.type(dy).shape) return std::nullopt;
      take_apart(term, parts);
    }
    return parts.pointwise.empty() ? std::nullopt : std::optional(std::move(parts));
  }

  // ReduceSum over all axes but that of the channels, which alone is left.
  bool sums_over_positions(const Node& node) const {
    if (node.op != "ReduceSum" || node.inputs.size() < 2 || !node.inputs[1].valid()) return false;
    const int rank = old_.type(node.inputs[0]).shape.rank();
    const graph::Value& axes = old_.value(node.inputs[1]);
    if (axes.kind != ValueKind::constant || node.attributes.integer("keepdims", 1) != 0) return false;
    std::vector<bool> summed(static_cast<std::size_t>(rank), false);
    for (std::int64_t i = 0; i < axes.data.element_count(); ++i) {
      const auto axis = static_cast<std::int64_t>(axes.data.at(i));
      summed[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
    }
    return rank > 2 && !summed[1] && std::ranges::count(summed, true) == rank - 1;
  }
  Var sum_over_positions(Var dy) {
    std::vector<std::int64_t> axes{0};
    for (int axis = 2; axis < dy.shape().rank(); ++axis) axes.push_back(axis);
    return rewrite_.builder().node1("ReduceSum", {dy, rewrite_.builder().integers(axes)},
                                    {{"keepdims", std::int64_t{0}}});
  }

  Var rest_of(const Parts& parts, ElementType element) {
    Var rest;
    for (ValueId term : parts.rest) rest = sum_of(rest, op::cast(rewrite_.now(term), element));
    return rest;
  }

  // What stands for node(dy) where node is linear in dy: node(rest) + the sum of w2^T node(dy2).
  template <class Linear>
  void compose_parts(const Node& node, const Parts& parts, ElementType element, const Linear& linear) {
    const Var rest = rest_of(parts, element);
    Var result = rest.valid() ? in_f32(linear(rest)) : Var();
    std::vector<Var> sums;
    for (const Node* part : parts.pointwise)
      sums.push_back(in_f32(linear(op::cast(rewrite_.now(part->inputs[0]), element))));
    begin_product(node);
    const Shape& shape = old_.type(node.outputs[0]).shape;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Var w2 = as_matrix(parameter(*parts.pointwise[i], 1));
      result = sum_of(result, op::reshape(op::matmul(transposed(w2), as_matrix(sums[i])), shape));
    }
    give(node, result);
  }

  bool compose_first(const Node& node) {
    const auto parts = parts_of(node.inputs[1]);
    if (!parts) return false;
    const Var x = rewrite_.now(node.inputs[0]);
    compose_parts(node, *parts, old_.type(node.inputs[1]).element, [&](Var dy) {
      return rewrite_.builder().node1(node.op, {x, dy}, node.attributes);
    });
    return true;
  }

  bool compose_bias(const Node& node) {
    if (!sums_over_positions(node)) return false;
    const auto parts = parts_of(node.inputs[0]);
    if (!parts) return false;
    compose_parts(node, *parts, old_.type(node.inputs[0]).element,
                  [&](Var dy) { return sum_over_positions(dy); });
    return true;
  }

  // ---- phases

  // What is made from here on for the node belongs to the update where it may.
  void begin_product(const Node& node) {
    if (found_.is_for_updates(node.outputs[0])) rewrite_.builder().set_phase(Phase::update);
  }
  bool is_moved(ValueId id) const {
    return std::ranges::find(moved_, id) != moved_.end();
  }
  void move(const Node& node) {
    rewrite_.builder().set_phase(Phase::update);
    give(node, op::cast(rewrite_.now(node.inputs[0]), old_.type(node.outputs[0]).element));
  }
  void give(const Node& node, Var result) {
    if (node.phase == Phase::backward && rewrite_.builder().phase() == Phase::update)
      moved_.push_back(node.outputs[0]);
    const Var typed = op::cast(result, old_.type(node.outputs[0]).element);
    rewrite_.replace(node, std::span(&typed, 1));
  }

  const Graph& old_;
  Findings found_;
  Rewrite rewrite_;
  std::vector<ValueId> moved_;  // to the update
};

}  // namespace

Graph compose_convolutions(const Graph& graph) { return Composer(graph).run(); }

}  // namespace superstep::target::cpu
