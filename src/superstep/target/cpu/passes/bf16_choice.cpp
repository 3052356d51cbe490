#include "superstep/target/cpu/passes/bf16_choice.h"

#include <optional>
#include <vector>

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"
#include "superstep/target/cpu/passes/product_images.h"
#include "superstep/target/cpu/plan/fusion.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// Cycles an element: to bring a bf16 to f32 where a tile is read, to round a result where it is stored, and
// to do either in a pass of its own. The first two are those of winograd_choice.h, of 16 elements.
constexpr double widening = 1.5 / 16, rounding = 4.0 / 16, converting = 0.3;
// Below so many positions weights stay pairs (docs/cpu/precision.md).
constexpr double few_positions = 12;

// Cycles that half of these bytes in f32 save, as winograd_choice.h counts them.
double saved(double bytes) {
  if (bytes <= static_cast<double>(kernels::second_level_cache())) return 0;
  return bytes / 2 / (bytes <= 4 * 1024 * 1024 ? 12 : 5);
}

double elements(const Graph& graph, ValueId id) {
  return static_cast<double>(graph.type(id).shape.element_count());
}

bool is_stored(const Graph& graph, ValueId id) {
  const graph::ValueKind kind = graph.value(id).kind;
  return kind == graph::ValueKind::constant || kind == graph::ValueKind::state;
}

double weights_of(const Graph& graph) {
  double sum = 0;
  for (const Node& node : graph.nodes())
    if (op::traits_of(node.op).product && is_stored(graph, node.inputs[1]))
      sum += elements(graph, node.inputs[1]);
  return sum;
}

// What is multiplied in f32 all the same: images by Winograd's algorithm, whose transforms convert, or
// directly.
double conversion(const Graph& graph, const Node& node) {
  const double x = elements(graph, node.inputs[0]), y = elements(graph, node.outputs[0]);
  const auto c = node.op == "Conv" ? product_as_convolution(graph, node) : std::nullopt;
  if (c && c->groups == 1) {
    constexpr auto pass = kernels::ConvolutionPass::forward;
    const double in_f32 = kernels::expected_cycles(*c, pass);
    if (in_f32 < kernels::direct_cycles(*c, pass)) {
      kernels::Convolution narrow = *c;
      narrow.x.type = narrow.y.type = ElementType::bf16;
      return kernels::expected_cycles(narrow, pass) - in_f32;
    }
  }
  return widening * x + rounding * y;
}

// By how many cycles bf16 is slower than f32.
double loss(const Graph& graph, const Node& node, double all_weights) {
  const ValueId x = node.inputs[0], w = node.inputs[1], y = node.outputs[0];
  const double kept = saved(4 * elements(graph, x)) + saved(4 * elements(graph, y));
  if (!is_stored(graph, w)) return conversion(graph, node) + widening * elements(graph, w) - kept;
  const Shape& result = graph.type(y).shape;
  const double given = static_cast<double>(
      result[op::is_convolution(op::traits_of(node.op).product_kind) ? 1 : result.rank() - 1]);
  const bool few = elements(graph, y) / given < few_positions;
  const double of_weights =
      few && all_weights > 0 ? saved(4 * all_weights) * elements(graph, w) / all_weights : 0;
  return conversion(graph, node) - kept - of_weights;
}

// ---- where pairs are fast

// Multiply-adds a cycle in f32, and what the same in pairs takes of its cycles. Matrix registers take less:
// what is found to gain with vectors gains there.
constexpr double multiply_adds_a_cycle = 16, time_of_pairs = 0.5;
// Cycles an element to pack an operand that is made in every run, for a product that reads it once.
constexpr double packing = 0.3;
// Convolutions are not judged: their sums are over taps as well.
constexpr double far_below_zero = -1e15;

// By how many cycles a product of pairs is slower than one in f32, and with it, where it is trained, the two
// that make its gradients: each reads two of its tensors and rounds the third, of which weights stay in f32.
double loss_of_pairs(const Graph& graph, const Node& node, bool trained) {
  if (!op::is_matrix_product(op::traits_of(node.op).product_kind)) return far_below_zero;
  const double saved = op::cost(graph, node).flops / 2 / multiply_adds_a_cycle * (1 - time_of_pairs);
  const double x = elements(graph, node.inputs[0]), y = elements(graph, node.outputs[0]);
  const double w = is_stored(graph, node.inputs[1]) ? 0 : elements(graph, node.inputs[1]);
  const double once = rounding * y + (w > 0 ? packing * (x + w) : 0);
  if (!trained) return once - saved;
  const double backwards = rounding * (y + x + w) + 2 * packing * (x + y + w);
  return once + backwards - 3 * saved;
}

struct Product {
  NodeId node;
  double loss;
  bool narrow = true;
};

class Choice {
 public:
  Choice(const Graph& graph, const transform::AutocastOptions& options)
      : graph_(graph),
        product_of_(graph.value_count(), none),
        converting_(options.trained ? 2 * converting : converting) {
    const double weights = weights_of(graph);
    const bool fast = kernels::multiplies_pairs_fast();
    for (const NodeId id : transform::products_to_narrow(graph, options)) {
      product_of_[graph.node(id).outputs[0].index()] = products_.size();
      const Node& node = graph.node(id);
      products_.push_back(
          {id, fast ? loss_of_pairs(graph, node, options.trained) : loss(graph, node, weights)});
    }
    for (const Node& node : graph.nodes()) follow(node);
  }

  std::set<std::string, std::less<>> run() {
    const double from_bf16 = descend(true);
    const std::vector<Product> found = products_;
    if (descend(false) >= from_bf16) products_ = found;
    std::set<std::string, std::less<>> kept;
    for (const Product& product : products_)
      if (!product.narrow) kept.insert(graph_.value(graph_.node(product.node).outputs[0]).name);
    return kept;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // What is done element by element to a product's result is in its type.
  void follow(const Node& node) {
    if (node.outputs.size() != 1 || product_of_[node.outputs[0].index()] != none) return;
    if (is_elementwise(graph_, node) || op::traits_of(node.op).precision == op::Precision::follows)
      for (const ValueId input : node.inputs)
        if (input.valid() && product_of_[input.index()] != none)
          product_of_[node.outputs[0].index()] = product_of_[input.index()];
  }

  // From all products in one type on, the product whose change saves most, until none does; the cycles that
  // are left.
  double descend(bool narrow) {
    for (Product& product : products_) product.narrow = narrow;
    double now = cycles();
    while (const auto best = most_saving(now)) {
      products_[*best].narrow = !products_[*best].narrow;
      now = cycles();
    }
    return now;
  }

  std::optional<std::size_t> most_saving(double now) {
    std::optional<std::size_t> best;
    double least = now;
    for (std::size_t i = 0; i < products_.size(); ++i) {
      products_[i].narrow = !products_[i].narrow;
      if (const double then = cycles(); then < least) least = then, best = i;
      products_[i].narrow = !products_[i].narrow;
    }
    return best;
  }

  // Beyond those of all products in f32.
  double cycles() const {
    double sum = 0;
    for (const Product& product : products_) {
      if (product.narrow) sum += product.loss;
      for (const ValueId read : graph_.node(product.node).inputs)
        if (read.valid() && !is_stored(graph_, read) && is_narrow(read) != product.narrow)
          sum += converting_ * elements(graph_, read);
    }
    return sum;
  }

  bool is_narrow(ValueId value) const {
    const std::size_t product = product_of_[value.index()];
    return product != none && products_[product].narrow;
  }

  const Graph& graph_;
  std::vector<Product> products_;
  std::vector<std::size_t> product_of_;  // by value: whose type it has
  double converting_;                    // its cotangent too, where it is trained
};

}  // namespace

std::set<std::string, std::less<>> choose_products_in_f32(const Graph& model,
                                                          const transform::AutocastOptions& options) {
  // What is trained with slow pairs keeps its values from the forward pass to the backward one: half the
  // bytes of these, too.
  if (options.trained && !kernels::multiplies_pairs_fast()) return {};
  return Choice(model, options).run();
}

}  // namespace superstep::target::cpu
