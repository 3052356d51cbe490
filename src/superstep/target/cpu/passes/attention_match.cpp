#include "superstep/target/cpu/passes/attention_match.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace superstep::target::cpu {
namespace {

class Matcher {
 public:
  Matcher(const Lowering& lowering, NodeId softmax, const SoftmaxGradient* gradient)
      : lowering_(lowering), graph_(lowering.graph()), softmax_(softmax), gradient_(gradient) {}

  std::optional<AttentionMatch> run() {
    const Node& node = graph_.node(softmax_);
    const int rank = lowering_.shape(node.outputs[0]).rank();
    if (rank < 2 || rank > 4 || normalize_axis(node.attributes.integer("axis", -1), rank) != rank - 1)
      return std::nullopt;
    scores_ = lowering_.shape(node.outputs[0]);
    if (!take(softmax_) || !match_scores(node.inputs[0]) || !match_weights()) return std::nullopt;
    if (gradient_ && !match_gradient()) return std::nullopt;
    if (!gradient_ && turned_weights_) return std::nullopt;
    if (match_.drop && !drops_are_mine()) return std::nullopt;
    if (!gradient_) share_keys();
    return match_;
  }

 private:
  using Nodes = std::vector<NodeId>;

  // The node becomes part of the attention, when it belongs to the body.
  bool take(NodeId id) {
    (in_gradient_ ? match_.gradient->inner : match_.inner).push_back(id);
    return lowering_.section_of(id) == Section::body;
  }

  const Node* producer(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.kind == graph::ValueKind::computed ? &graph_.node(value.producer) : nullptr;
  }
  NodeId producer_id(ValueId id) const { return graph_.value(id).producer; }

  std::optional<double> scalar(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    if (value.kind != graph::ValueKind::constant || value.type.shape.element_count() != 1 ||
        value.type.shape.rank() > scores_.rank())
      return std::nullopt;
    return value.data.at(0);
  }

  static bool is_float(ElementType element) {
    return element == ElementType::f32 || element == ElementType::bf16;
  }
  bool is_cast(const Node& node) const {
    return node.op == "Cast" && is_float(lowering_.type(node.inputs[0]).element) &&
           is_float(lowering_.type(node.outputs[0]).element);
  }

  // The factor and the other operand of a product with a constant, or of a division by one.
  struct Scaled {
    ValueId x;
    double factor;
  };
  std::optional<Scaled> scaled(const Node& node) const {
    if (node.op != "Mul" && node.op != "Div") return std::nullopt;
    if (const auto c = scalar(node.inputs[1])) return Scaled{node.inputs[0], node.op == "Mul" ? *c : 1 / *c};
    if (const auto c = scalar(node.inputs[0]); c && node.op == "Mul") return Scaled{node.inputs[1], *c};
    return std::nullopt;
  }

  // ---- scores: from softmax up to the product --------------------------------------------------------

  bool leads_to_product(ValueId id) const {
    const Node* node = producer(id);
    if (!node || lowering_.shape(id) != scores_) return false;
    if (node->op == "MatMul") return true;
    if (node->op != "Add" && node->op != "Where" && !is_cast(*node) && !scaled(*node)) return false;
    return std::ranges::any_of(node->inputs, [&](ValueId input) { return leads_to_product(input); });
  }

  bool match_scores(ValueId id) {
    double factor = 1;  // that everything found from here on is multiplied with
    while (leads_to_product(id) && lowering_.consumers(id).size() == 1 && !lowering_.leaves_section(id)) {
      const Node& node = *producer(id);
      if (!take(producer_id(id))) return false;
      if (node.op == "MatMul") {
        match_.q = node.inputs[0];
        match_.k = node.inputs[1];
        match_.scale = factor;
        return factor > 0;
      }
      if (const auto found = scaled(node)) {
        factor *= found->factor;
        id = found->x;
      } else if (is_cast(node)) {
        id = node.inputs[0];
      } else if (!match_mask(node, factor, id)) {
        return false;
      }
    }
    return false;
  }

  // Moves `id` on to the operand that is no mask.
  bool match_mask(const Node& node, double factor, ValueId& id) {
    if (node.op == "Add") {
      const bool first = leads_to_product(node.inputs[0]);
      const ValueId bias = node.inputs[first ? 1 : 0];
      if (match_.bias || lowering_.element_in_memory(bias) != ElementType::f32) return false;
      match_.bias = bias;
      match_.bias_scale = factor;
      id = node.inputs[first ? 0 : 1];
      return true;
    }
    // A bias added to what is hidden would have to be added there too.
    if (node.op != "Where" || match_.bias || match_.condition) return false;
    const auto yes = scalar(node.inputs[1]), no = scalar(node.inputs[2]);
    if (yes.has_value() == no.has_value()) return false;
    match_.condition = node.inputs[0];
    match_.hidden_if = yes.has_value();
    match_.hidden = (yes ? *yes : *no) * factor;
    id = node.inputs[yes ? 2 : 1];
    return true;
  }

  // ---- weights: from softmax down to the product -------------------------------------------------------

  Nodes readers(ValueId id) const {
    const auto all = lowering_.consumers(id);
    Nodes result(all.begin(), all.end());
    if (gradient_)
      std::erase_if(result, [&](NodeId reader) {
        return std::ranges::find(gradient_->inner, reader) != gradient_->inner.end();
      });
    return result;
  }

  // A product with a random mask, which may be rounded first.
  struct Dropped {
    ValueId x;
    NodeId mask;
    std::optional<NodeId> rounding;
  };
  std::optional<Dropped> dropped(const Node& node) const {
    if (node.op != "Mul") return std::nullopt;
    for (std::size_t side : {0u, 1u}) {
      ValueId factor = node.inputs[side];
      std::optional<NodeId> rounding;
      if (const Node* cast = producer(factor); cast && is_cast(*cast)) {
        rounding = producer_id(factor);
        factor = cast->inputs[0];
      }
      if (const Node* made = producer(factor); made && made->op == "superstep.RandomMask")
        return Dropped{node.inputs[1 - side], producer_id(factor), rounding};
    }
    return std::nullopt;
  }

  // Where(IsNaN(weights), 0, weights): rows that are hidden altogether have no weights.
  struct Guard {
    NodeId test, choice;
  };
  std::optional<Guard> guard_of(ValueId weights, const Nodes& next) const {
    if (next.size() != 2) return std::nullopt;
    for (std::size_t side : {0u, 1u}) {
      const Node &test = graph_.node(next[side]), &choice = graph_.node(next[1 - side]);
      if (test.op != "IsNaN" || choice.op != "Where" || choice.inputs[2] != weights) continue;
      if (choice.inputs[0] != test.outputs[0] || !has_one_reader(test.outputs[0])) continue;
      if (uniform_constant(graph_, choice.inputs[1]) != 0.0) continue;
      return Guard{next[side], next[1 - side]};
    }
    return std::nullopt;
  }

  bool match_weights() {
    ValueId weights = graph_.node(softmax_).outputs[0];
    for (;;) {
      if (lowering_.leaves_section(weights)) return false;
      const Nodes next = readers(weights);
      if (const auto guard = guard_of(weights, next); guard && !match_.drop) {
        if (gradient_ || !take(guard->test) || !take(guard->choice)) return false;
        match_.nan_to_zero = true;
        weights = graph_.node(guard->choice).outputs[0];
        continue;
      }
      if (next.size() != 1 || graph_.node(next[0]).op == "MatMul") return match_product(weights, next);
      const Node& node = graph_.node(next[0]);
      const auto drop = dropped(node);
      if (drop && !match_.drop && scores_.rank() >= 3) {
        match_.drop = drop->mask;
        if (drop->rounding && !take(*drop->rounding)) return false;
      } else if (!is_cast(node)) {
        return false;
      }
      if (!take(next[0])) return false;
      weights = node.outputs[0];
    }
  }

  // The product with v reads them, and in training one more, turned round.
  bool match_product(ValueId weights, const Nodes& next) {
    if (next.empty() || next.size() > 2) return false;
    std::optional<NodeId> product;
    for (NodeId reader : next) {
      const Node& node = graph_.node(reader);
      if (node.op == "MatMul" && node.inputs[0] == weights && node.inputs[1] != weights && !product)
        product = reader;
      else if (node.op == "Transpose" && !turned_weights_)
        turned_weights_ = reader;
      else
        return false;
    }
    if (!product || lowering_.section_of(*product) != Section::body) return false;
    const Node& node = graph_.node(*product);
    match_.root = *product;
    match_.v = node.inputs[1];
    match_.y = node.outputs[0];
    return lowering_.shape(match_.y).rank() == scores_.rank();
  }

  // ---- heads of keys that several heads of queries share
  // ---------------------------------------------------

  // The value [batch, heads, 1, keys, size] whose heads an Expand repeats, and what stands between it and the
  // product: the Expand, views, products with a constant.
  struct Repeated {
    ValueId source;
    std::int64_t sharing = 1;
    double factor = 1;
    Nodes by;
  };

  // How the elements of `id` follow one another in the memory that it is a view of.
  enum class Order : std::uint8_t { same, turned, other };
  Order order_in_memory(ValueId id) const {
    const ValueId root = lowering_.view(id).root;
    if (root == id) return Order::same;
    if (!lowering_.is_row_major(root) || lowering_.view(id).offset != 0) return Order::other;
    const Shape& shape = lowering_.shape(id);
    if (shape.element_count() != lowering_.shape(root).element_count()) return Order::other;
    if (lowering_.is_row_major(id)) return Order::same;
    if (shape.rank() < 2) return Order::other;
    std::vector<std::int64_t> extents = shape.extents();
    std::iter_swap(extents.end() - 1, extents.end() - 2);
    Strides strides = Shape(extents).row_major_strides();
    std::iter_swap(strides.end() - 1, strides.end() - 2);
    for (std::size_t axis = 0; axis < strides.size(); ++axis)
      if (shape[static_cast<int>(axis)] != 1 && strides[axis] != lowering_.view(id).strides[axis])
        return Order::other;
    return Order::turned;
  }

  // From `id` [batch, heads, keys, size], or with the last two exchanged when `turned`, back to the Expand.
  std::optional<Repeated> repeated(ValueId id, bool turned) const {
    const Shape heads = lowering_.shape(id);
    if (heads.rank() != 4) return std::nullopt;
    const std::int64_t keys = heads[turned ? 3 : 2], size = heads[turned ? 2 : 3];
    Repeated found;
    bool is_turned = false;
    for (;;) {
      const ValueId root = lowering_.view(id).root;
      const Order order = order_in_memory(id);
      const Shape& shape = lowering_.shape(id);
      if (order == Order::other || (order == Order::turned && (is_turned || shape[shape.rank() - 1] != keys)))
        return std::nullopt;
      is_turned = is_turned || order == Order::turned;
      for (; id != root; id = graph_.node(found.by.back()).inputs[0])
        if (!give_way(id, found.by)) return std::nullopt;
      if (!give_way(root, found.by)) return std::nullopt;
      const Node& maker = graph_.node(found.by.back());
      if (maker.op == "Expand") break;
      const auto product = scaled(maker);
      if (!product) return std::nullopt;
      found.factor *= product->factor;
      id = product->x;
    }
    const Shape& copies = lowering_.shape(id);
    found.source = graph_.node(found.by.back()).inputs[0];
    if (is_turned != turned || copies.rank() != 5 || copies[1] * copies[2] != heads[1]) return std::nullopt;
    if (copies != Shape{heads[0], copies[1], copies[2], keys, size} ||
        lowering_.shape(found.source) != Shape{heads[0], copies[1], 1, keys, size})
      return std::nullopt;
    found.sharing = copies[2];
    return found;
  }

  // Adds what makes the value, where it need not be made when its only reader does without it.
  bool give_way(ValueId id, Nodes& nodes) const {
    if (!producer(id) || !has_one_reader(id)) return false;
    nodes.push_back(producer_id(id));
    return lowering_.section_of(producer_id(id)) == Section::body;
  }

  // Copies of heads are not made where both k and v are such.
  void share_keys() {
    const auto k = repeated(match_.k, true), v = repeated(match_.v, false);
    if (!k || !v || k->sharing != v->sharing || k->sharing < 2 || !(k->factor > 0) || v->factor != 1) return;
    match_.k = k->source;
    match_.v = v->source;
    match_.sharing = k->sharing;
    match_.scale *= k->factor;
    for (const Repeated* each : {&*k, &*v})
      match_.inner.insert(match_.inner.end(), each->by.begin(), each->by.end());
  }

  // ---- the gradient --------------------------------------------------------------------------------------

  // What a value is, seen through transpositions and conversions: axis i of it is axis order[i] of `source`.
  struct Source {
    ValueId source;
    std::vector<int> order;
  };
  Source source_of(ValueId id) const {
    Source s{id, std::vector<int>(static_cast<std::size_t>(lowering_.shape(id).rank()))};
    std::iota(s.order.begin(), s.order.end(), 0);
    for (const Node* node = producer(id); node; node = producer(s.source)) {
      if (node->op == "Transpose") {
        std::vector<std::int64_t> reversed(s.order.size());
        std::iota(reversed.rbegin(), reversed.rend(), std::int64_t{0});
        const auto order = node->attributes.integers("perm", reversed);
        for (int& axis : s.order) axis = static_cast<int>(order[static_cast<std::size_t>(axis)]);
      } else if (!is_cast(*node)) {
        break;
      }
      s.source = node->inputs[0];
    }
    return s;
  }
  bool is_turned(ValueId a, ValueId b) const {
    if (lowering_.type(a).element != lowering_.type(b).element) return false;
    Source left = source_of(a);
    const Source right = source_of(b);
    if (left.order.size() < 2) return false;
    std::swap(left.order[left.order.size() - 1], left.order[left.order.size() - 2]);
    return left.source == right.source && left.order == right.order;
  }

  bool has_one_reader(ValueId id) const {
    return lowering_.consumers(id).size() == 1 && !lowering_.leaves_section(id);
  }

  bool match_gradient() {
    if (!turned_weights_) return false;
    match_.gradient.emplace();
    in_gradient_ = true;
    for (NodeId id : gradient_->inner)
      if (!take(id)) return false;
    return take(gradient_->root) && match_d_weights() && match_d_values() && match_d_scores() &&
           same_batches() && set_first();
  }

  // d_weights = dy v^T, times the drop mask.
  bool match_d_weights() {
    bool drops = false;
    for (ValueId id = gradient_->dy;;) {
      const Node* node = producer(id);
      if (!node || !has_one_reader(id) || !take(producer_id(id))) return false;
      if (node->op == "MatMul") {
        match_.gradient->dy = node->inputs[0];
        return drops == match_.drop.has_value() && is_turned(node->inputs[1], match_.v);
      }
      if (is_cast(*node)) {
        id = node->inputs[0];
      } else if (const auto drop = dropped(*node); drop && drop->mask == match_.drop && !drops) {
        drops = true;
        if (drop->rounding && !take(*drop->rounding)) return false;
        id = drop->x;
      } else {
        return false;
      }
    }
  }

  // dv = weights^T dy.
  bool match_d_values() {
    const Node& turned = graph_.node(*turned_weights_);
    if (!take(*turned_weights_) || !has_one_reader(turned.outputs[0]) ||
        !is_turned(turned.outputs[0], turned.inputs[0]))
      return false;
    const NodeId product = lowering_.consumers(turned.outputs[0])[0];
    const Node& node = graph_.node(product);
    if (node.op != "MatMul" || node.inputs[0] != turned.outputs[0] || node.inputs[1] != match_.gradient->dy)
      return false;
    match_.gradient->dv = node.outputs[0];
    return take(product);
  }

  // dq = d_scores k and dk = q^T d_scores, behind scale and mask.
  bool match_d_scores() {
    double factor = 1;
    bool hidden = false;
    for (ValueId id = graph_.node(gradient_->root).outputs[0];;) {
      if (lowering_.leaves_section(id)) return false;
      const auto next = lowering_.consumers(id);
      if (next.size() == 2)
        return std::abs(factor - match_.scale) <= 1e-6 * match_.scale &&
               hidden == match_.condition.has_value() && match_d_products(id, {next.begin(), next.end()});
      if (next.size() != 1 || !take(next[0])) return false;
      const Node& node = graph_.node(next[0]);
      if (const auto found = scaled(node))
        factor *= found->factor;
      else if (hides(node, id) && !hidden)
        hidden = true;
      else if (!is_cast(node))
        return false;
      id = node.outputs[0];
    }
  }

  bool hides(const Node& node, ValueId id) const {
    if (node.op != "Where" || !match_.condition || node.inputs[0] != *match_.condition) return false;
    const auto fill = scalar(node.inputs[match_.hidden_if ? 1 : 2]);
    return fill && *fill == 0 && node.inputs[match_.hidden_if ? 2 : 1] == id;
  }

  bool match_d_products(ValueId d_scores, const Nodes& next) {
    bool by_q = false, by_k = false;
    for (NodeId reader : next) {
      const Node& node = graph_.node(reader);
      if (node.op != "MatMul" || !take(reader)) return false;
      if (node.inputs[0] == d_scores && is_turned(node.inputs[1], match_.k)) {
        match_.gradient->dq = node.outputs[0];
        by_q = true;
      } else if (node.inputs[1] == d_scores && is_turned(node.inputs[0], match_.q)) {
        match_.gradient->dk = node.outputs[0];
        by_k = true;
      }
    }
    return by_q && by_k;
  }

  // No sums over broadcast axes.
  bool same_batches() const {
    const auto same = [&](ValueId a, ValueId b) { return lowering_.shape(a) == lowering_.shape(b); };
    const auto batches = [&](ValueId id) {
      const Shape& shape = lowering_.shape(id);
      if (shape.rank() != scores_.rank()) return false;
      for (int axis = 0; axis + 2 < shape.rank(); ++axis)
        if (shape[axis] != scores_[axis]) return false;
      return true;
    };
    const AttentionMatch::Gradient& g = *match_.gradient;
    return batches(match_.q) && batches(match_.k) && batches(match_.v) && same(g.dq, match_.q) &&
           same(g.dk, match_.k) && same(g.dv, match_.v) && same(g.dy, match_.y);
  }

  // All that the gradient reads is there when its first product can run.
  bool set_first() {
    AttentionMatch::Gradient& g = *match_.gradient;
    const auto reads_dy = [&](NodeId id) {
      const Node& node = graph_.node(id);
      return node.op == "MatMul" && (node.inputs[0] == g.dy || node.inputs[1] == g.dy);
    };
    std::optional<NodeId> first;
    for (NodeId id : g.inner)
      if (reads_dy(id) && (!first || id < *first)) first = id;
    if (!first || *first < match_.root) return false;
    g.first = *first;
    return true;
  }

  // Nobody else reads the drop mask, so that it is never made as a whole.
  bool drops_are_mine() {
    const ValueId mask = graph_.node(*match_.drop).outputs[0];
    const auto mine = [&](NodeId id) {
      const auto in = [&](const Nodes& nodes) { return std::ranges::find(nodes, id) != nodes.end(); };
      return in(match_.inner) || (match_.gradient && in(match_.gradient->inner));
    };
    const auto only_mine = [&](ValueId id) {
      return !lowering_.leaves_section(id) && std::ranges::all_of(lowering_.consumers(id), mine);
    };
    const bool roundings_too = std::ranges::all_of(lowering_.consumers(mask), [&](NodeId reader) {
      const Node& node = graph_.node(reader);
      return !is_cast(node) || only_mine(node.outputs[0]);
    });
    in_gradient_ = false;
    return only_mine(mask) && roundings_too && lowering_.shape(mask) == scores_ && take(*match_.drop);
  }

  const Lowering& lowering_;
  const Graph& graph_;
  NodeId softmax_;
  const SoftmaxGradient* gradient_;
  Shape scores_;
  AttentionMatch match_;
  std::optional<NodeId> turned_weights_;  // the transposition that the gradient by v reads
  bool in_gradient_ = false;
};

}  // namespace

std::vector<AttentionMatch> find_attentions(const Lowering& lowering,
                                            const std::vector<SoftmaxGradient>& softmax_gradients) {
  std::vector<AttentionMatch> found;
  const Graph& graph = lowering.graph();
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != "Softmax") continue;
    const auto gradient = std::ranges::find(softmax_gradients, node.outputs[0], &SoftmaxGradient::y);
    if (auto match =
            Matcher(lowering, NodeId(i), gradient == softmax_gradients.end() ? nullptr : &*gradient).run())
      found.push_back(std::move(*match));
  }
  return found;
}

}  // namespace superstep::target::cpu
