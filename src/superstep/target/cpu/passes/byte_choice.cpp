#include "superstep/target/cpu/passes/byte_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"
#include "superstep/target/cpu/passes/product_images.h"
#include "superstep/target/cpu/plan/fusion.h"
#include "superstep/transform/precision/byte_moves.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/transposed_convolution.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr double infinite = std::numeric_limits<double>::infinity();

// Bias, activation and store, of 16 results in the first-level cache.
constexpr double finishing_cycles = 3;

// What a product is multiplied in.
enum class Kind : std::uint8_t { bytes, bf16, f32 };
constexpr std::array kinds{Kind::bytes, Kind::bf16, Kind::f32};

struct Product {
  NodeId node;
  std::array<double, kinds.size()> cycles;  // by kind; infinite: not possible
  Kind kind = Kind::bytes;

  double cycles_of(Kind of) const { return cycles[static_cast<std::size_t>(of)]; }
  double now() const { return cycles_of(kind); }
  Kind off_bytes() const { return cycles_of(Kind::bf16) < cycles_of(Kind::f32) ? Kind::bf16 : Kind::f32; }
};

kernels::IntegerConvolution on_bytes(const Node& node, const kernels::Convolution& c) {
  kernels::IntegerConvolution bytes{
      .x = c.x, .y = c.y, .window = c.window, .groups = c.groups, .zero_point = 0, .epilogue = {}};
  bytes.x.type = ElementType::u8;
  // Rows are filled up to fours (transform/precision/quantize.h).
  if (!op::is_convolution(op::traits_of(node.op).product_kind))
    bytes.x.channels = (bytes.x.channels + 3) / 4 * 4;
  return bytes;
}

std::optional<Product> product_of(const Graph& graph, NodeId id, bool may_be_bf16) {
  const Node& node = graph.node(id);
  const auto c = product_as_convolution(graph, node),
             over_bytes = product_on_bytes_as_convolution(graph, node);
  if (!c || !over_bytes) return std::nullopt;
  const bool gradient = node.op == "ConvTranspose" && !transform::is_pointwise_transposed(graph, node);
  const auto pass = gradient ? kernels::ConvolutionPass::input_gradient : kernels::ConvolutionPass::forward;
  const kernels::Image& result = gradient ? c->x : c->y;
  const double finishing = finishing_cycles * static_cast<double>(result.height * result.columns() *
                                                                  ((result.channels + 15) / 16));
  // Of the time on bytes: estimates are not exact, and what takes as long either way is on bytes.
  constexpr double clearly_faster = 1.05;
  kernels::Convolution narrow = *c;
  narrow.x.type = narrow.y.type = ElementType::bf16;
  return Product{
      .node = id,
      .cycles = {
          kernels::byte_cycles(on_bytes(node, *over_bytes)),
          may_be_bf16 ? clearly_faster * (kernels::expected_cycles(narrow, pass) + finishing) : infinite,
          kernels::expected_cycles(*c, pass) + finishing}};
}

using Readers = std::vector<std::vector<NodeId>>;  // by value

Readers readers_of(const Graph& graph) {
  Readers readers(graph.value_count());
  for (const Node& node : graph.nodes())
    for (const ValueId value : node.inputs)
      if (value.valid()) readers[value.index()].push_back(graph.value(node.outputs[0]).producer);
  return readers;
}

// What reads `value` behind all that is done element by element, each once.
void add_products_behind(const Graph& graph, const Readers& readers, ValueId value,
                         std::vector<NodeId>& found) {
  for (const NodeId id : readers[value.index()]) {
    const Node& reader = graph.node(id);
    if (is_elementwise(graph, reader) || reader.op == "BatchNormalization")
      add_products_behind(graph, readers, reader.outputs[0], found);
    else if (std::ranges::find(found, id) == found.end())
      found.push_back(id);
  }
}

// A pointwise expansion that a depthwise convolution alone reads runs as one step with it in f32
// (lower_expanded_depthwise.cpp): what lies between them never reaches memory. On bytes it does.
bool expands_for_depthwise(const Graph& graph, const Readers& readers, const Node& node) {
  if (node.op != "Conv" || node.attributes.integer("group", 1) != 1) return false;
  const Shape& window = graph.type(node.inputs[1]).shape;
  if (window.element_count() != window[0] * window[1]) return false;
  std::vector<NodeId> behind;
  add_products_behind(graph, readers, node.outputs[0], behind);
  if (behind.size() != 1) return false;
  const Node& reader = graph.node(behind.front());
  return reader.op == "Conv" && window[0] > 1 && reader.attributes.integer("group", 1) == window[0];
}

class Choice {
 public:
  Choice(const Graph& graph, const transform::QuantizeOptions& options)
      : graph_(graph),
        uses_(graph.use_counts()),
        product_at_(graph.node_count(), none),
        made_by_(graph.value_count(), none) {
    if (options.beside_bf16 && kernels::multiplies_pairs_fast())
      for (const NodeId id : transform::products_to_narrow(graph, {.depthwise = true, .kept = options.kept}))
        narrow_.insert(id);
    const Readers readers = readers_of(graph);
    for (const NodeId id : transform::products_to_quantize(graph, options))
      if (auto product = product_of(graph, id, narrow_.contains(id))) {
        if (expands_for_depthwise(graph, readers, graph.node(id)))
          product->cycles[0] += kernels::apart_cycles(
              static_cast<double>(graph.type(graph.node(id).outputs[0]).shape.element_count()));
        product_at_[id.index()] = products_.size();
        products_.push_back(*product);
      }
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      follow(graph.nodes()[i]);
      const op::Traits& traits = op::traits_of(graph.nodes()[i].op);
      if (traits.moves_bytes && traits.work != op::WorkKind::view) movers_.push_back(i);
    }
  }

  ByteChoice run() {
    const double with_bytes = descend([](const Product& product) {
      return std::isfinite(product.cycles_of(Kind::bytes)) ? Kind::bytes : product.off_bytes();
    });
    // From where all are on bytes the way to where none is may be uphill. It is long, and not worth trying
    // where bytes gain much.
    constexpr double worth_trying = 1.4;
    const std::vector<Product> found = products_;
    for (Product& product : products_) product.kind = product.off_bytes();
    if (cycles() > worth_trying * with_bytes || descend(&Product::off_bytes) >= with_bytes) products_ = found;
    return result();
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // What is done element by element to a product's result, and what no product on bytes could be but is in
  // bf16 where what it reads is, has its type.
  void follow(const Node& node) {
    const std::size_t product = product_at_[graph_.value(node.outputs[0]).producer.index()];
    if (product != none) {
      made_by_[node.outputs[0].index()] = product;
      return;
    }
    const bool others_read = std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                                         [&](ValueId id) { return id.valid() && uses_[id.index()] > 0; });
    if (others_read) return;
    const bool follows = is_elementwise(graph_, node) || node.op == "BatchNormalization" ||
                         op::traits_of(node.op).precision == op::Precision::follows;
    for (const ValueId input : node.inputs)
      if ((follows || may_follow(node)) && input.valid() && made_by_[input.index()] != none)
        made_by_[node.outputs[0].index()] = made_by_[input.index()];
  }

  bool may_follow(const Node& node) const { return narrow_.contains(graph_.value(node.outputs[0]).producer); }

  // From these kinds on, the product whose change saves most changes, until none does; the cycles that are
  // left.
  template <class Start>
  double descend(const Start& start) {
    for (Product& product : products_) product.kind = std::invoke(start, product);
    double now = cycles();
    while (change_one(now)) now = cycles();
    return now;
  }

  // Where that saves more than what estimates are exact to.
  bool change_one(double now) {
    constexpr double gain_wanted = 1e-3;  // of all the cycles
    Product* best = nullptr;
    Kind better = Kind::bytes;
    double least = now * (1 - gain_wanted);
    for (Product& product : products_) {
      const Kind before = product.kind;
      for (const Kind kind : kinds) {
        if (kind == before || !std::isfinite(product.cycles_of(kind))) continue;
        product.kind = kind;
        if (const double then = cycles(); then < least) least = then, best = &product, better = kind;
      }
      product.kind = before;
    }
    if (best) best->kind = better;
    return best != nullptr;
  }

  ByteChoice result() {
    ByteChoice choice;
    const double now = cycles();
    for (Product& product : products_) {
      if (product.kind == Kind::bytes) continue;
      const Kind kind = product.kind;
      const std::string& name = graph_.value(graph_.node(product.node).outputs[0]).name;
      if (kind == Kind::bf16) choice.in_bf16.insert(name);
      product.kind = Kind::bytes;
      const double off_bytes = product.cycles_of(kind);
      choice.slow.push_back({name, (off_bytes + cycles() - now) / off_bytes, kind == Kind::bf16});
      product.kind = kind;
    }
    for (const NodeId id : narrow_) {
      const ValueId value = graph_.node(id).outputs[0];
      if (product_at_[id.index()] == none && is_bf16(value)) choice.in_bf16.insert(graph_.value(value).name);
    }
    return choice;
  }

  bool on_bytes(const Node& node) const {
    const auto index = product_at_[graph_.value(node.outputs[0]).producer.index()];
    return index != none && products_[index].kind == Kind::bytes;
  }
  bool is_bf16(ValueId value) const {
    const std::size_t product = made_by_[value.index()];
    return product != none && products_[product].kind == Kind::bf16;
  }

  // Of all products and of the passes between them, as the products are now.
  double cycles() const {
    const transform::ByteMoves moves(graph_, [&](const Node& node) { return on_bytes(node); });
    double sum = 0;
    std::vector<bool> converted(graph_.value_count(), false), narrowed = converted;
    for (const Product& product : products_) {
      const ValueId x = graph_.node(product.node).inputs[0];
      sum += product.now();
      if (product.kind == Kind::bytes) sum += conversion(moves, x, converted);
      if (product.kind == Kind::bf16) sum += narrowing(x, narrowed);
    }
    return sum + moving(moves);
  }

  // Of what moves or compares elements between products (pools, joins), which takes bytes for what it is.
  double moving(const transform::ByteMoves& moves) const {
    constexpr double bytes_a_cycle = 24;  // read or written: pools and moves on a Zen 4, 45 GB/s
    double bytes = 0;
    for (const std::size_t i : movers_) {
      const Node& node = graph_.nodes()[i];
      const ValueId result = node.outputs[0];
      double elements = static_cast<double>(graph_.type(result).shape.element_count());
      for (std::size_t k = 0; k < (node.op == "Concat" ? node.inputs.size() : 1); ++k)
        elements += static_cast<double>(graph_.type(node.inputs[k]).shape.element_count());
      bytes += elements * (moves.moved_by(result) ? 1 : is_bf16(result) ? 2 : 4);
    }
    return bytes / bytes_a_cycle;
  }

  // Of rounding `value` to bf16, once for all its readers: products in either type do it as they store their
  // results, those on bytes have no such end.
  double narrowing(ValueId value, std::vector<bool>& narrowed) const {
    if (is_bf16(value) || narrowed[value.index()]) return 0;
    const std::size_t product = made_by_[value.index()];
    if (product == none ? graph_.value(value).kind == graph::ValueKind::computed
                        : products_[product].kind != Kind::bytes)
      return 0;
    narrowed[value.index()] = true;
    constexpr double rounding = 0.3;  // cycles an element (bf16_choice.cpp)
    return rounding * static_cast<double>(graph_.type(value).shape.element_count());
  }

  // Of what `value` is made bytes with, once for all its readers.
  double conversion(const transform::ByteMoves& moves, ValueId value, std::vector<bool>& converted) const {
    if (converted[value.index()]) return 0;
    converted[value.index()] = true;
    if (const auto mover = moves.moved_by(value)) {
      double sum = 0;
      const Node& node = graph_.node(*mover);
      for (std::size_t k = 0; k < (node.op == "Concat" ? node.inputs.size() : 1); ++k)
        sum += conversion(moves, node.inputs[k], converted);
      return sum;
    }
    if (moves.in_bytes_alone(value) && made_by_bytes(value)) return 0;
    return kernels::quantize_cycles(static_cast<double>(graph_.type(value).shape.element_count()));
  }

  // Is `value` what follows a product on bytes element by element? Then it is rounded on the way.
  bool made_by_bytes(ValueId value) const {
    while (graph_.value(value).kind == graph::ValueKind::computed) {
      const Node& node = graph_.node(graph_.value(value).producer);
      if (on_bytes(node)) return true;
      if (!is_elementwise(graph_, node) && node.op != "BatchNormalization") return false;
      value = node.inputs[0];
    }
    return false;
  }

  const Graph& graph_;
  std::vector<int> uses_;  // by value
  std::vector<Product> products_;
  std::vector<std::size_t> product_at_;  // by node
  std::vector<std::size_t> made_by_;     // by value: the product whose type it has
  std::set<NodeId> narrow_;              // what may be in bf16
  std::vector<std::size_t> movers_;      // nodes
};

}  // namespace

ByteChoice choose_products_on_bytes(const graph::Graph& model, const transform::QuantizeOptions& options) {
  return Choice(model, options).run();
}

}  // namespace superstep::target::cpu
