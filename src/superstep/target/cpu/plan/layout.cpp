#include "superstep/target/cpu/plan/layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/plan/fusion.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/target/cpu/plan/planar.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

struct ImageOperands {
  std::string_view op;
  unsigned inputs, outputs;  // bit sets
};
// The operands that kernels want as images.
constexpr std::array image_operators = {
    ImageOperands{"Conv", 1, 1},
    ImageOperands{"ConvTranspose", 1, 1},
    ImageOperands{"ConvInteger", 1, 1},
    ImageOperands{"superstep.ConvWeightGradient", 3, 0},
    ImageOperands{"MaxPool", 1, 3},
    ImageOperands{"superstep.MaxPoolGradient", 3, 1},
    ImageOperands{"AveragePool", 1, 1},
    ImageOperands{"superstep.AveragePoolGradient", 1, 1},
    ImageOperands{"GlobalAveragePool", 1, 1},
    ImageOperands{"superstep.ChannelMoments", 1, 0},
    ImageOperands{"superstep.ChannelSums", 3, 0},
    ImageOperands{"Resize", 1, 1},
    ImageOperands{"DepthToSpace", 1, 1},
    ImageOperands{"superstep.ResizeGradient", 1, 1},
};

// Channels of a part of a concatenation: lines of cache that no two parts share.
constexpr std::int64_t channel_multiple = 16;

std::vector<std::int64_t> permutation(const Node& node, int rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.rbegin(), order.rend(), std::int64_t{0});  // ONNX's default: reversed
  return node.attributes.integers("perm", order);
}

class Assigner {
 public:
  explicit Assigner(const Graph& graph) : graph_(graph) {
    layout_.views.resize(graph.value_count());
    layout_.is_alias.resize(graph.node_count());
    children_.resize(graph.value_count());
    wants_image_.resize(graph.value_count());
    wants_rows_.resize(graph.value_count());
  }

  Layout run() {
    find_views();
    find_preferences();
    varies_ = depends_on_micro_batch();
    find_joins();
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const graph::Value& value = graph_.values()[i];
      if (value.kind != graph::ValueKind::computed) place_root(ValueId(i));
    }
    for (std::size_t i = 0; i < graph_.node_count(); ++i) place_outputs(NodeId(i));
    return std::move(layout_);
  }

 private:
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }
  View& view(ValueId id) { return layout_.views[id.index()]; }

  void find_views() {
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (is_view_operator(node)) children_[node.inputs[0].index()].push_back(NodeId(i));
    }
  }

  void find_preferences() {
    const std::vector<bool> candidates = may_be_planar(graph_);
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      if (!candidates[i]) want_images(graph_.nodes()[i]);
    layout_.is_planar = planar_convolutions(graph_, candidates, wants_image_);
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (layout_.is_planar[i])
        want_rows(windowed_images(node).x), want_rows(windowed_images(node).y);
      else if (candidates[i])
        want_images(node);
    }
    for (const Node& node : graph_.nodes())
      if (const op::ProductKind kind = op::traits_of(node.op).product_kind;
          kind == op::ProductKind::convolution || kind == op::ProductKind::transposed_convolution ||
          node.op == "ConvInteger")
        want_rows(node.inputs[1]);
    // A conversion of type reads in the order in which it writes, and bytes that are joined to an image are
    // written as one.
    for (std::size_t i = graph_.node_count(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      if ((node.op == "Cast" || node.op == "QuantizeLinear") && wants_image_[node.outputs[0].index()] &&
          graph_.value(node.inputs[0]).kind == graph::ValueKind::computed)
        want_image(node.inputs[0]);
      if (node.op == "Concat" && wants_image_[node.outputs[0].index()])
        for (ValueId part : node.inputs)
          if (graph_.type(part).element == ElementType::u8 &&
              graph_.value(part).kind == graph::ValueKind::computed)
            want_image(part);
    }
  }

  void want_images(const Node& node) {
    for (const ImageOperands& entry : image_operators) {
      if (entry.op != node.op) continue;
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if ((entry.inputs >> k & 1u) && node.inputs[k].valid() && !reads_columns(node, k))
          want_image(node.inputs[k]);
      for (std::size_t k = 0; k < node.outputs.size(); ++k)
        if ((entry.outputs >> k & 1u) && node.outputs[k].valid()) want_image(node.outputs[k]);
    }
  }

  // The user's pictures of few channels are read by window columns, in any layout (lower_product.h).
  bool reads_columns(const Node& node, std::size_t input) const {
    const op::ProductKind kind = op::traits_of(node.op).product_kind;
    const bool forward = kind == op::ProductKind::convolution,
               backward = kind == op::ProductKind::weight_gradient;
    if (input != 0 || (!forward && !backward) || graph_.value(node.inputs[0]).kind != graph::ValueKind::input)
      return false;
    const Shape& weights = shape(forward ? node.inputs[1] : node.outputs[0]);
    return has_few_channels(node, graph_.type(node.inputs[0]), weights);
  }

  // The weights of a convolution, which are packed from where they lie: row-major, also behind conversions of
  // type. A view that lies otherwise is copied.
  void want_rows(ValueId id) {
    wants_rows_[id.index()] = true;
    const graph::Value& value = graph_.value(id);
    if (value.kind == graph::ValueKind::computed && graph_.node(value.producer).op == "Cast")
      want_rows(graph_.node(value.producer).inputs[0]);
  }

  void want_image(ValueId id) {
    if (shape(id).rank() >= 3) wants_image_[id.index()] = true;
  }

  // ---- concatenations by placement ---------------------------------------------------------------------

  // What a Concat joins along the channels of an image is written there by the kernel that makes it, where
  // that kernel can leave gaps between positions and nobody else reads it: reading across gaps wastes more of
  // the caches than the copy that it saves (measured on U-Nets, whose skip connections are pooled too).
  void find_joins() {
    readers_ = graph_.use_counts();
    for (const Node& node : graph_.nodes()) {
      if (node.op != "Concat" || node.phase == graph::Phase::update) continue;
      const ValueId whole = node.outputs[0];
      if (!wants_image_[whole.index()] || shape(whole)[1] % channel_multiple != 0 ||
          normalize_axis(node.attributes.integer("axis"), shape(whole).rank()) != 1)
        continue;
      std::int64_t begin = 0;
      for (ValueId part : node.inputs) {
        if (begin % channel_multiple == 0 && varies_[part.index()] && can_be_part(node, part))
          joins_.emplace(part, Join{whole, begin});
        begin += shape(part)[1];
      }
    }
  }

  // What does not is computed ahead, in memory that all threads share.
  std::vector<bool> depends_on_micro_batch() const {
    std::vector<bool> depends(graph_.value_count(), false);
    for (ValueId input : graph_.inputs()) depends[input.index()] = true;
    for (const Node& node : graph_.nodes())
      if (node.op == "superstep.RandomMask" || std::ranges::any_of(node.inputs, [&](ValueId input) {
            return input.valid() && depends[input.index()];
          }))
        for (ValueId output : node.outputs)
          if (output.valid()) depends[output.index()] = true;
    return depends;
  }

  bool can_be_part(const Node& concat, ValueId part) const {
    const graph::Value& value = graph_.value(part);
    if (value.kind != graph::ValueKind::computed ||
        (value.type.element != ElementType::f32 && value.type.element != ElementType::u8) ||
        readers_[part.index()] != 1 || joins_.contains(part) || shape(part)[1] % channel_multiple != 0 ||
        std::ranges::count(concat.inputs, part) != 1)
      return false;
    const Node& producer = graph_.node(value.producer);
    const op::Traits& producer_traits = op::traits_of(producer.op);
    return producer.phase == concat.phase &&
           ((producer_traits.product && op::is_convolution(producer_traits.product_kind)) ||
            producer.op == "QuantizeLinear" || producer.op == "DepthToSpace" ||
            is_elementwise(graph_, producer));
  }

  bool place_part(ValueId id) {
    const auto join = joins_.find(id);
    if (join == joins_.end()) return false;
    const auto& [whole, begin] = join->second;
    const Strides strides = dense_strides(shape(whole), image_order(shape(whole).rank()));
    view(id) = {whole, begin, strides};
    return true;
  }

  // Strides of `node`'s output when its input has `strides`, and the other way round.
  std::optional<Strides> forwards(const Node& node, const Strides& strides) const {
    const Shape &from = shape(node.inputs[0]), &to = shape(node.outputs[0]);
    if (node.op != "Transpose") return reshape_strides(from, strides, to);
    Strides result;
    for (std::int64_t axis : permutation(node, from.rank()))
      result.push_back(strides[static_cast<std::size_t>(axis)]);
    return result;
  }
  std::optional<Strides> backwards(const Node& node, const Strides& strides) const {
    const Shape &from = shape(node.inputs[0]), &to = shape(node.outputs[0]);
    if (node.op != "Transpose") return reshape_strides(to, strides, from);
    Strides result(strides.size());
    const auto order = permutation(node, from.rank());
    for (std::size_t i = 0; i < order.size(); ++i) result[static_cast<std::size_t>(order[i])] = strides[i];
    return result;
  }

  // The strides `id` should have so that it, or a view of it, is the image that somebody wants.
  std::optional<Strides> wanted(ValueId id) const {
    if (wants_image_[id.index()]) return dense_strides(shape(id), image_order(shape(id).rank()));
    for (NodeId child : children_[id.index()]) {
      const Node& node = graph_.node(child);
      if (const auto below = wanted(node.outputs[0]))
        if (auto strides = backwards(node, *below)) return strides;
    }
    return std::nullopt;
  }

  // Element-wise results lie as their largest operand does, so that one walk over memory serves both; in the
  // same order, when all such operands have gaps.
  std::optional<Strides> inherited(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    if (value.kind != graph::ValueKind::computed) return std::nullopt;
    std::optional<Strides> without_gaps;
    for (ValueId input : graph_.node(value.producer).inputs)
      if (input.valid() && shape(input) == value.type.shape) {
        const Strides& strides = layout_.views[input.index()].strides;
        if (!strides.empty() && is_dense(value.type.shape, strides)) return strides;
        if (!strides.empty() && !without_gaps)
          without_gaps = dense_strides(value.type.shape, full_order(strides));
      }
    return without_gaps;
  }

  static std::vector<int> full_order(const Strides& strides) {
    std::vector<int> order(strides.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return strides[static_cast<std::size_t>(a)] > strides[static_cast<std::size_t>(b)];
    });
    return order;
  }

  // A mask lies as what it is multiplied with.
  std::optional<Strides> of_partner(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    if (value.kind != graph::ValueKind::computed || graph_.node(value.producer).op != "superstep.RandomMask")
      return std::nullopt;
    for (const Node& node : graph_.nodes()) {
      if (node.op != "Mul" || std::ranges::find(node.inputs, id) == node.inputs.end()) continue;
      for (ValueId other : node.inputs) {
        const Strides& strides = layout_.views[other.index()].strides;
        if (other != id && shape(other) == shape(id) && !strides.empty() && is_dense(shape(id), strides))
          return strides;
      }
    }
    return std::nullopt;
  }

  void place_root(ValueId id) {
    if (place_part(id)) return;
    const graph::Value& value = graph_.value(id);
    std::optional<Strides> strides;
    const bool stored_by_user =
        value.kind == graph::ValueKind::constant || value.kind == graph::ValueKind::state;
    if (!stored_by_user && !wants_rows_[id.index()]) {
      strides = wanted(id);
      if (!strides) strides = as_read(id);
      if (!strides && value.kind == graph::ValueKind::computed && !is_product(value)) strides = inherited(id);
      if (!strides) strides = of_partner(id);
    }
    view(id) = {id, 0, strides ? *strides : value.type.shape.row_major_strides()};
  }

  // The strides with which a product's result is, turned and reshaped, a row-major tensor: the heads of
  // attention side by side again, without a copy.
  std::optional<Strides> as_read(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    if (value.kind != graph::ValueKind::computed ||
        op::traits_of(graph_.node(value.producer).op).product_kind != op::ProductKind::matrices)
      return std::nullopt;
    for (NodeId turned : children_[id.index()]) {
      const Node& transpose = graph_.node(turned);
      if (transpose.op != "Transpose") continue;
      for (NodeId reader : children_[transpose.outputs[0].index()]) {
        const Node& reshape = graph_.node(reader);
        if (reshape.op != "Reshape") continue;
        const auto strides = backwards(reshape, shape(reshape.outputs[0]).row_major_strides());
        if (!strides) continue;
        const auto own = backwards(transpose, *strides);
        if (own && (own->back() == 1 || (*own)[own->size() - 2] == 1)) return own;
      }
    }
    return std::nullopt;
  }

  // A product's result has no operand whose order it should copy.
  bool is_product(const graph::Value& value) const {
    const std::string& op = graph_.node(value.producer).op;
    return op::is_matrix_product(op::traits_of(op).product_kind) || op == "MatMulInteger" ||
           op == "Softmax" || op == "LogSoftmax";
  }

  // Where a node finds its first input. What the update reads of a micro-batch is a sum over all of them,
  // which lies row-major in memory of its own.
  View source_of(const Node& node) {
    const ValueId input = node.inputs[0];
    const graph::Value& value = graph_.value(input);
    const bool made_in_update =
        value.kind == graph::ValueKind::computed && graph_.node(value.producer).phase == graph::Phase::update;
    if (node.phase == graph::Phase::update && varies_[input.index()] && !made_in_update)
      return {input, 0, shape(input).row_major_strides()};
    return view(input);
  }

  void place_outputs(NodeId id) {
    const Node& node = graph_.node(id);
    if (is_view_operator(node)) {
      const View source = source_of(node);
      if (const auto strides = forwards(node, source.strides)) {
        // A view that somebody wants as an image or row-major and that is not so is copied.
        const ValueId output = node.outputs[0];
        if (may_lie(output, *strides)) {
          view(output) = {source.root, source.offset, *strides};
          layout_.is_alias[id.index()] = true;
          return;
        }
      }
    }
    if (place_cuts(id)) return;
    for (ValueId output : node.outputs)
      if (output.valid()) place_root(output);
    if (node.op == "Concat")
      layout_.is_alias[id.index()] =
          std::ranges::all_of(node.inputs, [&](ValueId part) { return joins_.contains(part); });
  }

  // Parts of a value where they lie in it. What somebody wants as an image must be one, gaps aside.
  bool place_cuts(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op != "Slice" && node.op != "Split") return false;
    const View source = source_of(node);
    const auto cuts = cuts_of(graph_, node, source.strides);
    // What is read backwards is copied: no kernel but that of copies takes such strides.
    if (!cuts || std::ranges::any_of(*cuts, [](const Cut& cut) { return std::ranges::min(cut.steps) < 1; }))
      return false;
    std::vector<View> parts;
    for (std::size_t i = 0; i < cuts->size(); ++i) {
      View part{source.root, source.offset + (*cuts)[i].offset, source.strides};
      for (std::size_t axis = 0; axis < part.strides.size(); ++axis)
        part.strides[axis] *= (*cuts)[i].steps[axis];
      const ValueId output = node.outputs[i];
      if (wants_image_[output.index()] && !is_image_with_gaps(shape(output), part.strides)) return false;
      if (wants_rows_[output.index()] && !is_row_major(shape(output), part.strides)) return false;
      parts.push_back(std::move(part));
    }
    for (std::size_t i = 0; i < parts.size(); ++i) view(node.outputs[i]) = std::move(parts[i]);
    layout_.is_alias[id.index()] = true;
    return true;
  }

  // Contiguous channels, columns that are equally spaced, rows without gaps between them.
  static bool is_image_with_gaps(const Shape& shape, const Strides& strides) {
    const int rank = shape.rank();
    if (rank < 3 || strides[1] != 1 || strides[0] < shape[1]) return false;
    std::int64_t step = strides[0] * shape[0];
    for (int axis = rank - 1; axis >= 2; --axis) {
      if (strides[static_cast<std::size_t>(axis)] != step) return false;
      step *= shape[axis];
    }
    return true;
  }

  static bool are_same(const Shape& shape, const Strides& a, const Strides& b) {
    for (std::size_t axis = 0; axis < a.size(); ++axis)
      if (shape[static_cast<int>(axis)] > 1 && a[axis] != b[axis]) return false;
    return true;
  }

  static bool is_image(const Shape& shape, const Strides& strides) {
    return are_same(shape, strides, dense_strides(shape, image_order(shape.rank())));
  }

  static bool is_row_major(const Shape& shape, const Strides& strides) {
    return are_same(shape, strides, shape.row_major_strides());
  }

  bool may_lie(ValueId id, const Strides& strides) const {
    return (!wants_image_[id.index()] || is_image(shape(id), strides)) &&
           (!wants_rows_[id.index()] || is_row_major(shape(id), strides));
  }

  const Graph& graph_;
  Layout layout_;
  std::vector<std::vector<NodeId>> children_;
  std::vector<bool> wants_image_, wants_rows_;
  struct Join {
    ValueId whole;
    std::int64_t begin = 0;  // its first channel there
  };
  std::map<ValueId, Join> joins_;
  std::vector<int> readers_;
  std::vector<bool> varies_;  // by value: from one micro-batch to the next
};

}  // namespace

bool is_view_operator(const graph::Node& node) { return op::traits_of(node.op).view != op::View::none; }

std::vector<int> image_order(int rank) {
  std::vector<int> order;
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(0);
  order.push_back(1);
  return order;
}

Layout assign_layout(const graph::Graph& graph) { return Assigner(graph).run(); }

}  // namespace superstep::target::cpu
