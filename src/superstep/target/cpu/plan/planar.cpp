#include "superstep/target/cpu/plan/planar.h"

#include <algorithm>
#include <numeric>

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/kernels/convolution/planar.h"
#include "superstep/target/cpu/plan/fusion.h"
#include "superstep/target/cpu/plan/patterns.h"

namespace superstep::target::cpu {
namespace {

using graph::ValueKind;

// Columns of a row below which vectors along it gain nothing. Chosen: two vectors of eight.
constexpr std::int64_t least_columns = 16;

bool is_plane_type(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

bool is_weight_gradient(const Node& node) {
  return op::traits_of(node.op).product_kind == op::ProductKind::weight_gradient;
}

bool fits_planes(const Graph& graph, const Node& node) {
  if (node.op != "Conv" && !is_weight_gradient(node)) return false;
  const auto [image, result] = windowed_images(node);
  const graph::ValueType &x = graph.type(image), &y = graph.type(result);
  if (x.shape.rank() != 4 || node.attributes.integer("group", 1) != 1) return false;
  if (!is_plane_type(x.element) || !is_plane_type(y.element)) return false;
  const graph::ValueType& weights =
      graph.type(is_weight_gradient(node) ? node.outputs[0] : behind_casts(graph, node.inputs[1]));
  if (weights.element != ElementType::f32) return false;
  if (std::max(x.shape[1], y.shape[1]) > kernels::most_planar_channels || y.shape[3] < least_columns)
    return false;
  const op::ConvGeometry geometry = op::conv_geometry(node.attributes, x.shape, weights.shape);
  return geometry.windows.back().stride == 1 &&
         std::ranges::all_of(geometry.windows,
                             [](const op::Window& w) { return w.pad_begin >= 0 && w.pad_end >= 0; });
}

// Values that lie alike: joined by nodes that compute element by element, or move.
class Families {
 public:
  explicit Families(const Graph& graph) : graph_(graph), parent_(graph.value_count()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    for (const Node& node : graph.nodes())
      if (keeps_order(node)) join(node);
  }

  std::size_t of(ValueId id) {
    std::size_t value = id.index();
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }

 private:
  bool keeps_order(const Node& node) const {
    return is_elementwise(graph_, node) || op::traits_of(node.op).view != op::View::none ||
           std::ranges::count(std::vector<std::string>{"Split", "Slice", "Concat", "Pad", "Expand"}, node.op);
  }

  void join(const Node& node) {
    ValueId first;
    for (const auto* values : {&node.inputs, &node.outputs})
      for (ValueId id : *values) {
        if (!id.valid() || graph_.value(id).kind == ValueKind::constant ||
            graph_.value(id).kind == ValueKind::state)
          continue;
        if (first.valid()) parent_[of(id)] = of(first);
        first = id;
      }
  }

  const Graph& graph_;
  std::vector<std::size_t> parent_;
};

}  // namespace

WindowedImages windowed_images(const Node& node) {
  return {node.inputs[0], is_weight_gradient(node) ? node.inputs[1] : node.outputs[0]};
}

std::vector<bool> may_be_planar(const Graph& graph) {
  std::vector<bool> fits;
  for (const Node& node : graph.nodes()) fits.push_back(fits_planes(graph, node));
  return fits;
}

std::vector<bool> planar_convolutions(const Graph& graph, const std::vector<bool>& candidates,
                                      const std::vector<bool>& wants_image) {
  std::vector<bool> planar = candidates;
  if (std::ranges::count(planar, true) == 0) return planar;
  Families families(graph);
  std::vector<bool> taken(graph.value_count(), false);  // by family
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    if (wants_image[i]) taken[families.of(ValueId(i))] = true;
  // One that is not planar wants its own images as the others do.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const Node& node = graph.nodes()[i];
      if (!planar[i]) continue;
      const auto images = windowed_images(node);
      const std::size_t x = families.of(images.x), y = families.of(images.y);
      if (!taken[x] && !taken[y]) continue;
      planar[i] = false, changed = true;
      taken[x] = taken[y] = true;
    }
  }
  return planar;
}

}  // namespace superstep::target::cpu
