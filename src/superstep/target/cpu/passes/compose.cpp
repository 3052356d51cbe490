#include "superstep/target/cpu/passes/compose.h"

#include <algorithm>
#include <map>
#include <optional>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueKind;
using op::Var;
using transform::Rewrite;

// The terms of a sum before and after: at least so many times fewer.
constexpr std::int64_t fewer_terms = 2;

// A convolution of one tap behind another one, and nothing between.
struct Linear {
  const Node *first, *second;
};

// The same parameters whatever the inputs are: states, constants, and what is made of them.
std::vector<bool> find_parameters(const Graph& graph) {
  std::vector<bool> fixed(graph.value_count(), false);
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    fixed[i] = graph.values()[i].kind == ValueKind::state || graph.values()[i].kind == ValueKind::constant;
  for (const Node& node : graph.nodes()) {
    const bool made_of_fixed = std::ranges::all_of(
        node.inputs, [&](ValueId input) { return !input.valid() || fixed[input.index()]; });
    for (ValueId output : node.outputs)
      if (output.valid()) fixed[output.index()] = made_of_fixed && !op::get(node.op).has_effects;
  }
  return fixed;
}

// What is found in the model before it is rewritten.
class Matcher {
 public:
  explicit Matcher(const Graph& graph)
      : graph_(graph), uses_(graph.use_counts()), fixed_(find_parameters(graph)) {}

  const Node* maker(ValueId id, std::string_view op) const {
    if (!id.valid() || graph_.value(id).kind != ValueKind::computed) return nullptr;
    const Node& node = graph_.node(graph_.value(id).producer);
    return node.op == op ? &node : nullptr;
  }
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }
  bool is_read_once(ValueId id) const { return uses_[id.index()] == 1; }

  // A convolution in f32 of one group whose weights and bias are parameters.
  bool is_plain_convolution(const Node& node) const {
    if (node.op != "Conv" || node.attributes.integer("group", 1) != 1 || shape(node.inputs[0]).rank() < 3)
      return false;
    return std::ranges::all_of(node.inputs,
                               [&](ValueId input) {
                                 return !input.valid() || graph_.type(input).element == ElementType::f32;
                               }) &&
           fixed_[node.inputs[1].index()] && (!has_bias(node) || fixed_[node.inputs[2].index()]);
  }
  static bool has_bias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2].valid(); }

  // A matrix over the channels.
  bool is_pointwise(const Node& node) const {
    if (!is_plain_convolution(node)) return false;
    const op::ConvGeometry geometry =
        op::conv_geometry(node.attributes, shape(node.inputs[0]), shape(node.inputs[1]));
    return std::ranges::all_of(geometry.windows, [](const op::Window& window) {
      return window.kernel == 1 && window.stride == 1 && window.pad_begin == 0 && window.pad_end == 0;
    });
  }

  // Inputs under a window.
  std::int64_t inputs_of(const Node& first) const {
    const Shape& weights = shape(first.inputs[1]);
    return weights.element_count() / weights[0];
  }

  // What a convolution makes whose input another one makes, with as few inputs.
  std::optional<Linear> linear(const Node& second) const {
    if (!is_pointwise(second)) return std::nullopt;
    const Node* first = maker(second.inputs[0], "Conv");
    if (!first || !is_plain_convolution(*first) || fixed_[first->inputs[0].index()]) return std::nullopt;
    if (fewer_terms * inputs_of(*first) > shape(first->inputs[1])[0]) return std::nullopt;
    return Linear{first, &second};
  }

  // A value [batch, channels, positions] (or, turned, [batch, positions, channels]) that is such an image
  // with its positions in one row, where the columns behind it are fewer than its channels.
  std::optional<Linear> linear_rows(ValueId id, bool turned) const {
    if (turned) {
      const Node* transpose = maker(id, "Transpose");
      if (!transpose || !swaps_last(*transpose)) return std::nullopt;
      id = transpose->inputs[0];
    }
    const Node* reshape = maker(id, "Reshape");
    if (!reshape || !joins_positions(shape(reshape->inputs[0]), shape(id))) return std::nullopt;
    const Node* second = maker(reshape->inputs[0], "Conv");
    const auto found = second ? linear(*second) : std::nullopt;
    if (!found || fewer_terms * (inputs_of(*found->first) + 1) > shape(id)[1]) return std::nullopt;
    return found;
  }
  static bool swaps_last(const Node& transpose) {
    return transpose.attributes.integers("perm", {}) == std::vector<std::int64_t>{0, 2, 1};
  }
  static bool joins_positions(const Shape& image, const Shape& rows) {
    return image.rank() > 3 && rows.rank() == 3 && image[0] == rows[0] && image[1] == rows[1];
  }

  // The product that is the convolution's input, transposed and with its positions as an image's.
  const Node* product_before(const Node& convolution) const {
    const Node* reshape = maker(convolution.inputs[0], "Reshape");
    if (!reshape || !is_read_once(convolution.inputs[0])) return nullptr;
    const Node* transpose = maker(reshape->inputs[0], "Transpose");
    if (!transpose || !swaps_last(*transpose) || !is_read_once(reshape->inputs[0]) ||
        !joins_positions(shape(convolution.inputs[0]), shape(reshape->inputs[0])))
      return nullptr;
    return is_read_once(transpose->inputs[0]) ? maker(transpose->inputs[0], "MatMul") : nullptr;
  }

 private:
  const Graph& graph_;
  std::vector<int> uses_;
  std::vector<bool> fixed_;  // by value
};

Var as_matrix(Var weights) {
  const std::int64_t rows = weights.shape()[0];
  return op::reshape(weights, Shape{rows, weights.shape().element_count() / rows});
}
Var transposed(Var matrix) { return op::transpose(matrix, {1, 0}); }
Var as_pointwise(Var matrix, int rank) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents[0] = matrix.shape()[0], extents[1] = matrix.shape()[1];
  return op::reshape(matrix, Shape(extents));
}
// [batch, channels, positions...] with the positions in one row.
Var as_rows(Var image) {
  const Shape& s = image.shape();
  return op::reshape(image, Shape{s[0], s[1], s.element_count() / (s[0] * s[1])});
}
Var turned(Var rows) { return op::transpose(rows, {0, 2, 1}); }

class Composer {
 public:
  explicit Composer(const Graph& model) : match_(model), rewrite_(model) {}

  Graph run(bool& changed) {
    rewrite_.visit_nodes([&](const Node& node) {
      if (compose_weighted_sum(node) || compose_convolution(node) || compose_product(node))
        changed = true;
      else
        rewrite_.keep(node);
    });
    return rewrite_.finish();
  }

 private:
  bool compose_convolution(const Node& node) {
    const auto linear = match_.linear(node);
    if (!linear) return false;
    const Var w1 = rewrite_.now(linear->first->inputs[1]);
    std::vector<std::int64_t> extents = w1.shape().extents();
    extents[0] = match_.shape(node.inputs[1])[0];
    const Var weights = op::reshape(product_of_weights(*linear), Shape(extents));
    give(node, rewrite_.builder().node1("Conv", {now(*linear->first, 0), weights, bias_of(*linear)},
                                        linear->first->attributes));
    return true;
  }

  // (a X)^T (b X) over the channels.
  bool compose_product(const Node& node) {
    if (node.op != "MatMul") return false;
    const auto left = match_.linear_rows(node.inputs[0], true),
               right = match_.linear_rows(node.inputs[1], false);
    if (!left || !right || left->first != right->first) return false;
    const Var x = columns(*left->first);
    const Var m = op::matmul(transposed(matrix_of(*right)), matrix_of(*left));
    const Var mixed = rewrite_.builder().node1("Conv", {x, as_pointwise(m, x.shape().rank())});
    give(node, op::matmul(turned(as_rows(mixed)), as_rows(x)));
    return true;
  }

  // w (p (a X)^T)^T + c.
  bool compose_weighted_sum(const Node& node) {
    if (node.op != "Conv" || !match_.is_pointwise(node)) return false;
    const Node* product = match_.product_before(node);
    const auto linear = product ? match_.linear_rows(product->inputs[1], true) : std::nullopt;
    if (!linear) return false;
    const Var x = columns(*linear->first);
    const Var sum = op::matmul(rewrite_.now(product->inputs[0]), turned(as_rows(x)));
    std::vector<std::int64_t> extents = match_.shape(node.inputs[0]).extents();
    extents[1] = x.shape()[1];
    const Var image = op::reshape(turned(sum), Shape(extents));
    const Var weights = op::matmul(as_matrix(now(node, 1)), matrix_of(*linear));
    give(node, rewrite_.builder().node1(
                   "Conv", {image, as_pointwise(weights, x.shape().rank()), now(node, 2)}, node.attributes));
    return true;
  }

  // X as an image: the inputs under each window of the convolution as channels, and a channel of ones.
  Var columns(const Node& first) {
    Var& made = columns_[&first];
    if (made.valid()) return made;
    std::vector<std::int64_t> extents = match_.shape(first.inputs[1]).extents();
    const std::int64_t inputs = match_.inputs_of(first);
    extents[0] = inputs + 1;
    Tensor picks(ElementType::f32, Shape(extents)), ones(ElementType::f32, Shape{inputs + 1});
    for (std::int64_t i = 0; i < picks.element_count(); ++i) picks.set(i, i % inputs == i / inputs ? 1 : 0);
    for (std::int64_t i = 0; i <= inputs; ++i) ones.set(i, i == inputs ? 1 : 0);
    op::Builder& builder = rewrite_.builder();
    made = builder.node1("Conv", {now(first, 0), builder.constant(picks), builder.constant(ones)},
                         first.attributes);
    return made;
  }

  // a of y = a X.
  Var matrix_of(const Linear& linear) {
    Var& made = matrices_[linear.second];
    if (made.valid()) return made;
    const Var weights = product_of_weights(linear);
    Var bias = bias_of(linear);
    if (!bias.valid())
      bias = rewrite_.builder().constant(Tensor(ElementType::f32, Shape{weights.shape()[0]}));
    made = op::concat(std::vector{weights, op::reshape(bias, Shape{weights.shape()[0], 1})}, 1);
    return made;
  }
  Var product_of_weights(const Linear& linear) {
    return op::matmul(as_matrix(now(*linear.second, 1)), as_matrix(now(*linear.first, 1)));
  }
  Var bias_of(const Linear& linear) {
    const Var own = now(*linear.second, 2), before = now(*linear.first, 2);
    if (!before.valid()) return own;
    const Var passed = op::matmul(as_matrix(now(*linear.second, 1)), before);
    return own.valid() ? passed + own : passed;
  }

  Var now(const Node& node, std::size_t input) {
    return input < node.inputs.size() ? rewrite_.now(node.inputs[input]) : Var();
  }
  void give(const Node& node, Var result) { rewrite_.replace(node, std::span(&result, 1)); }

  Matcher match_;
  Rewrite rewrite_;
  std::map<const Node*, Var> columns_;   // by first convolution
  std::map<const Node*, Var> matrices_;  // by second convolution
};

}  // namespace

Graph compose_linear(const Graph& model) {
  bool changed = false;
  Graph composed = Composer(model).run(changed);
  return changed ? transform::prune(composed) : model;
}

}  // namespace superstep::target::cpu
