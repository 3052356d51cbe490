#include "superstep/target/cpu/passes/byte_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"
#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"
#include "superstep/target/cpu/passes/product_images.h"
#include "superstep/target/cpu/plan/fusion.h"
#include "superstep/transform/precision/byte_moves.h"
#include "superstep/transform/transposed_convolution.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// Bias, activation and store, of 16 results in the first-level cache.
constexpr double finishing_cycles = 3;

struct Product {
  NodeId node;
  double f32_cycles = 0, byte_cycles = 0;
  bool on_bytes = true;
  double share = 1;  // of the f32 time, when it was left there
};

std::optional<Product> product_of(const Graph& graph, NodeId id) {
  const auto f32 = product_as_convolution(graph, graph.node(id)),
             c = product_on_bytes_as_convolution(graph, graph.node(id));
  if (!f32 || !c) return std::nullopt;
  const bool gradient =
      graph.node(id).op == "ConvTranspose" && !transform::is_pointwise_transposed(graph, graph.node(id));
  const auto pass = gradient ? kernels::ConvolutionPass::input_gradient : kernels::ConvolutionPass::forward;
  kernels::IntegerConvolution bytes{
      .x = c->x, .y = c->y, .window = c->window, .groups = c->groups, .zero_point = 0, .epilogue = {}};
  bytes.x.type = ElementType::u8;
  // Rows are filled up to fours (transform/precision/quantize.h).
  if (graph.node(id).op != "Conv" && graph.node(id).op != "ConvTranspose") bytes.x.channels = (bytes.x.channels + 3) / 4 * 4;
  const double vectors = static_cast<double>(c->y.height * c->y.columns() * ((c->y.channels + 15) / 16));
  return Product{.node = id,
                 .f32_cycles = kernels::expected_cycles(*f32, pass) +
                               finishing_cycles * vectors,
                 .byte_cycles = kernels::byte_cycles(bytes)};
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
  Choice(const Graph& graph, const transform::QuantizeOptions& options) : graph_(graph) {
    product_at_.assign(graph.node_count(), none);
    const Readers readers = readers_of(graph);
    for (const NodeId id : transform::products_to_quantize(graph, options))
      if (auto product = product_of(graph, id)) {
        if (expands_for_depthwise(graph, readers, graph.node(id)))
          product->byte_cycles += kernels::apart_cycles(
              static_cast<double>(graph.type(graph.node(id).outputs[0]).shape.element_count()));
        product_at_[id.index()] = products_.size();
        products_.push_back(*product);
      }
  }

  std::vector<SlowOnBytes> run() {
    // Without products of bytes all are hopeless: no one of them alone would make the sum finite.
    for (Product& product : products_)
      if (!std::isfinite(product.byte_cycles)) {
        product.on_bytes = false;
        product.share = product.byte_cycles;
      }
    double now = cycles();
    while (const auto slowest = most_saving(now)) {
      Product& product = products_[*slowest];
      const double before = now;
      product.on_bytes = false;
      now = cycles();
      product.share = (product.f32_cycles + before - now) / product.f32_cycles;
    }
    std::vector<SlowOnBytes> result;
    for (const Product& product : products_)
      if (!product.on_bytes)
        result.push_back({graph_.value(graph_.node(product.node).outputs[0]).name, product.share});
    return result;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // The product whose return to f32 saves most, beyond what estimates are exact to.
  std::optional<std::size_t> most_saving(double now) {
    constexpr double gain_wanted = 1e-3;  // of all the cycles
    std::optional<std::size_t> best;
    double least = now * (1 - gain_wanted);
    for (std::size_t i = 0; i < products_.size(); ++i) {
      if (!products_[i].on_bytes) continue;
      products_[i].on_bytes = false;
      if (const double then = cycles(); then < least) least = then, best = i;
      products_[i].on_bytes = true;
    }
    return best;
  }

  bool on_bytes(const Node& node) const {
    const auto index = product_at_[graph_.value(node.outputs[0]).producer.index()];
    return index != none && products_[index].on_bytes;
  }

  // Of all products and of the passes between them, as the products are now.
  double cycles() const {
    const transform::ByteMoves moves(graph_, [&](const Node& node) { return on_bytes(node); });
    double sum = 0;
    std::vector<bool> converted(graph_.value_count(), false);
    for (const Product& product : products_) {
      sum += product.on_bytes ? product.byte_cycles : product.f32_cycles;
      if (product.on_bytes) sum += conversion(moves, graph_.node(product.node).inputs[0], converted);
    }
    return sum;
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
  std::vector<Product> products_;
  std::vector<std::size_t> product_at_;  // by node
};

}  // namespace

std::vector<SlowOnBytes> choose_products_on_bytes(const graph::Graph& model,
                                                  const transform::QuantizeOptions& options) {
  return Choice(model, options).run();
}

}  // namespace superstep::target::cpu
