#include "superstep/transform/precision/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/quantization.h"
#include "superstep/transform/precision/byte_moves.h"
#include "superstep/transform/precision/byte_weights.h"
#include "superstep/transform/rewrite.h"
#include "superstep/transform/transposed_convolution.h"

namespace superstep::transform {
namespace {

constexpr double largest_byte = 255;
constexpr std::int64_t bytes_together = 4;  // that are multiplied and summed

std::int64_t filled_up(std::int64_t bytes) {
  return (bytes + bytes_together - 1) / bytes_together * bytes_together;
}

// A product that can be taken, and what is special about it.
struct Candidate {
  bool convolution = false;
  bool stored_out_in = false;  // the weights' first axis is the output's
  std::int64_t summed = 0, given = 0;
};

bool is_stored(const Graph& graph, ValueId id) {
  const graph::ValueKind kind = graph.value(id).kind;
  return kind == graph::ValueKind::constant || kind == graph::ValueKind::state;
}

bool is_f32(const Graph& graph, ValueId id) { return graph.type(id).element == ElementType::f32; }

std::optional<Candidate> convolution_candidate(const Graph& graph, const Node& node) {
  const Shape& weights = graph.type(node.inputs[1]).shape;
  if (weights.rank() != 3 && weights.rank() != 4) return std::nullopt;
  const std::int64_t groups = node.attributes.integer("group", 1);
  const bool sums_rows = groups == 1 && weights.rank() == 4 && weights[1] % bytes_together != 0;
  return Candidate{.convolution = true,
                   .stored_out_in = true,
                   .summed = sums_rows ? filled_up(weights[1] * weights[3]) : weights[1],
                   .given = weights[0] / groups};
}

std::optional<Candidate> gemm_candidate(const Graph& graph, const Node& node) {
  const bool plain = node.attributes.integer("transA", 0) == 0 && node.attributes.number("alpha", 1.0) == 1 &&
                     node.attributes.number("beta", 1.0) == 1;
  if (!plain) return std::nullopt;
  const bool out_in = node.attributes.integer("transB", 0) != 0;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  return Candidate{
      .stored_out_in = out_in, .summed = weights[out_in ? 1 : 0], .given = weights[out_in ? 0 : 1]};
}

std::optional<Candidate> matmul_candidate(const Graph& graph, const Node& node) {
  const Shape& weights = graph.type(node.inputs[1]).shape;
  if (weights.rank() != 2 || graph.type(node.inputs[0]).shape.rank() < 2) return std::nullopt;
  return Candidate{.summed = weights[0], .given = weights[1]};
}

// As a convolution to blocks (expand_transposed).
std::optional<Candidate> transposed_candidate(const Graph& graph, const Node& node) {
  if (!as_block_convolution(graph, node)) return std::nullopt;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  return Candidate{.convolution = true, .stored_out_in = true, .summed = weights[0], .given = weights[1]};
}

std::optional<Candidate> candidate_of(op::ProductKind kind, const Graph& graph, const Node& node) {
  switch (kind) {
    case op::ProductKind::convolution: return convolution_candidate(graph, node);
    case op::ProductKind::transposed_convolution: return transposed_candidate(graph, node);
    case op::ProductKind::scaled_matrices: return gemm_candidate(graph, node);
    case op::ProductKind::matrices: return matmul_candidate(graph, node);
    case op::ProductKind::weight_gradient:
    case op::ProductKind::none: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Candidate> candidate(const Graph& graph, const Node& node, const QuantizeOptions& options) {
  const op::Traits& traits = op::traits_of(node.op);
  if (!traits.product) return std::nullopt;
  if (!is_stored(graph, node.inputs[1]) || is_stored(graph, node.inputs[0])) return std::nullopt;
  if (!is_f32(graph, node.inputs[0]) || !is_f32(graph, node.inputs[1])) return std::nullopt;
  const auto found = candidate_of(traits.product_kind, graph, node);
  if (options.kept.contains(graph.value(node.outputs[0]).name)) return std::nullopt;
  // Rows are filled up (integer_product), images are not.
  if (!found || (found->convolution && found->summed % bytes_together != 0)) return std::nullopt;
  const bool wide = found->summed >= options.least_summed && found->given >= options.least_given;
  return wide ? found : std::nullopt;
}

void check_range(const std::string& name, const ValueRange& range) {
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.low > range.high)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the range {} to {} cannot be quantized", range.low, range.high),
                "value %" + name, "calibrate on data that give finite values");
}

// A matrix with so many rows, zeros behind its own.
Tensor with_rows(const Tensor& matrix, std::int64_t rows) {
  if (matrix.shape()[0] == rows) return matrix;
  Tensor result(matrix.type(), {rows, matrix.shape()[1]});
  std::copy_n(matrix.bytes(), matrix.byte_count(), result.bytes());
  return result;
}

bool is_taken(const Graph& model, const Node& node, const RangeTable& ranges,
              const QuantizeOptions& options) {
  return candidate(model, node, options) && ranges.contains(model.value(node.inputs[0]).name);
}

// By value: the node that alone reads it, once.
std::vector<std::optional<graph::NodeId>> sole_readers(const Graph& graph) {
  std::vector<std::size_t> count(graph.value_count(), 0);
  std::vector<std::optional<graph::NodeId>> readers(graph.value_count());
  for (const graph::Output& output : graph.outputs()) ++count[output.value.index()];
  for (const graph::Update& update : graph.updates()) ++count[update.next.index()];
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    for (const ValueId input : graph.nodes()[i].inputs)
      if (input.valid()) {
        ++count[input.index()];
        readers[input.index()] = graph::NodeId(i);
      }
  for (std::size_t i = 0; i < readers.size(); ++i)
    if (count[i] != 1) readers[i].reset();
  return readers;
}

class Quantizer {
 public:
  Quantizer(const Graph& model, const RangeTable& ranges, const QuantizeOptions& options)
      : rewrite_(model),
        options_(options),
        moves_(ByteMoves::within_ranges(
            model, [&](const Node& node) { return is_taken(model, node, ranges, options); }, ranges)),
        given_(ranges),
        ranges_(moves_.widened(ranges)),
        sole_readers_(sole_readers(model)) {}

  Graph run() {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    return prune(rewrite_.finish());
  }

 private:
  // An activation as bytes: once for all products that read it.
  struct Bytes {
    Var value, zero_point;
    float scale;
  };

  const Graph& old() const { return rewrite_.old(); }

  bool takes(const Node& node) const { return is_taken(old(), node, given_, options_); }

  void visit(const Node& node) {
    if (const auto term = moves_.term_in_bytes(old().value(node.outputs[0]).producer))
      return add_bytes(node, *term);
    if (const auto owed = owed_.find(old().value(node.outputs[0]).producer); owed != owed_.end())
      return take_off(node, owed->second);
    if (!takes(node)) return rewrite_.keep(node);
    const std::string& name = old().value(node.inputs[0]).name;
    check_range(name, given_.find(name)->second);
    const Bytes x = bytes_of(node.inputs[0], byte_scale(ranges_.find(name)->second));
    rewrite_.replace(node, std::vector{integer_product(node, *candidate(old(), node, options_), x)});
  }

  // A sum whose input `term` is read as it was rounded.
  void add_bytes(const Node& node, std::size_t term) {
    const std::string& name = old().value(node.inputs[term]).name;
    check_range(name, given_.find(name)->second);
    const Bytes x = bytes_of(node.inputs[term], byte_scale(ranges_.find(name)->second));
    op::Builder& b = rewrite_.builder();
    const Var read = op::dequantize_linear(x.value, b.constant(Tensor::scalar(x.scale)), x.zero_point);
    const Var other = rewrite_.now(node.inputs[1 - term]);
    rewrite_.replace(node, std::vector{term == 0 ? read + other : other + read});
  }

  // Every value of a family (ByteMoves) has the same scale.
  Bytes bytes_of(ValueId id, const ByteScale& scale) {
    if (const auto found = bytes_.find(id); found != bytes_.end()) return found->second;
    const auto mover = moves_.moved_by(id);
    const Bytes result = mover ? moved(old().node(*mover), scale) : rounded(id, scale);
    return bytes_.emplace(id, result).first->second;
  }

  Bytes rounded(ValueId id, const ByteScale& scale) {
    op::Builder& b = rewrite_.builder();
    const Var zero_point = b.constant(Tensor::scalar(static_cast<std::uint8_t>(scale.zero_point)));
    const Var value =
        op::quantize_linear(rewrite_.now(id), b.constant(Tensor::scalar(scale.scale)), zero_point);
    return {value, zero_point, scale.scale};
  }

  // The same operator on the bytes of what it reads. That it made f32 before is seen to by prune().
  Bytes moved(const Node& node, const ByteScale& scale) {
    std::vector<Var> inputs;
    Bytes first;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op != "Concat" && k > 0) {
        inputs.push_back(rewrite_.now(node.inputs[k]));
        continue;
      }
      const Bytes part = bytes_of(node.inputs[k], scale);
      if (k == 0) first = part;
      inputs.push_back(part.value);
    }
    return {rewrite_.builder().node(node.op, inputs, node.attributes, 1)[0], first.zero_point, scale.scale};
  }

  // Rows whose length is no multiple of four, with bytes behind them that weights of zero leave out.
  Var filled(ValueId id, Var bytes) {
    const Shape& shape = bytes.shape();
    const std::int64_t length = shape[shape.rank() - 1], missing = filled_up(length) - length;
    if (missing == 0) return bytes;
    const auto found = filled_.find(id);
    if (found != filled_.end()) return found->second;
    std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * shape.rank()), 0);
    pads.back() = missing;
    return filled_.emplace(id, op::pad(bytes, pads)).first->second;
  }

  Var integer_product(const Node& node, const Candidate& product, const Bytes& x) {
    op::Builder& b = rewrite_.builder();
    const graph::Value& stored = old().value(node.inputs[1]);
    const ByteWeights weights =
        byte_weights(stored.data, {.convolution = product.convolution, .out_in = product.stored_out_in});
    const std::string name = stored.name + ".i8";
    const Var sums =
        product.convolution
            ? b.node1("ConvInteger", {x.value, b.constant(weights.bytes, name), x.zero_point},
                      node.attributes)
            : b.node1("MatMulInteger",
                      {filled(node.inputs[0], x.value),
                       b.constant(with_rows(weights.bytes, filled_up(product.summed)), name), x.zero_point});
    const int axis = product.convolution ? 1 : sums.shape().rank() - 1;
    const Var result = op::dequantize_linear(sums, scales(weights.scales, x.scale), {}, axis);
    return with_bias(node, product, result, excess_of(node, product, weights));
  }

  // What rounded weights add to each channel in the mean over the calibration samples (M. Nagel et al.,
  // "Data-free quantization through weight equalization and bias correction", arXiv:1906.04721, 4.2); empty:
  // not known.
  std::vector<double> excess_of(const Node& node, const Candidate& product,
                                const ByteWeights& weights) const {
    const ValueId x = node.inputs[0];
    const std::vector<double>& means = given_.find(old().value(x).name)->second.means;
    const int axis = product.convolution ? 1 : old().type(x).shape.rank() - 1;
    if (means.empty() || axis != channel_axis(old(), x)) return {};
    if (const std::int64_t channels = old().type(x).shape[axis];
        static_cast<std::int64_t>(means.size()) != channels)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has {} means for {} channels", means.size(), channels),
                  "value %" + old().value(x).name, "give one per channel, or none");
    if (!product.convolution) return mean_excess(weights, means);
    return mean_excess(weights, means,
                       shares_of_taps(node.attributes, old().type(x).shape, weights.bytes.shape()));
  }

  // Takes the excess off where a value a channel is added anyway: the product's own bias, what alone reads
  // the product, or else an addition more.
  Var with_bias(const Node& node, const Candidate& product, Var result, const std::vector<double>& excess) {
    const int rank = result.shape().rank();
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2].valid();
    if (excess.empty()) return has_bias ? result + bias(node, product, rank) : result;
    if (has_bias && is_stored(old(), node.inputs[2]) &&
        old().type(node.inputs[2]).shape == Shape{static_cast<std::int64_t>(excess.size())})
      return result + along_channels(less(node.inputs[2], excess), product, rank);
    if (has_bias) result = result + bias(node, product, rank);
    const ValueId value = node.outputs[0];
    if (const auto reader = sole_readers_[value.index()]; reader && takes_off(old().node(*reader), value)) {
      owed_[*reader] = excess;
      return result;
    }
    Tensor taken(ElementType::f32, {static_cast<std::int64_t>(excess.size())});
    for (std::size_t i = 0; i < excess.size(); ++i) taken.set(static_cast<std::int64_t>(i), -excess[i]);
    return result + along_channels(rewrite_.builder().constant(taken), product, rank);
  }

  // Is something a channel added to, or taken off, `value` there?
  bool takes_off(const Node& reader, ValueId value) const {
    const Shape& shape = old().type(value).shape;
    if (reader.op == "BatchNormalization")
      return reader.attributes.integer("training_mode", 0) == 0 && reader.inputs[0] == value &&
             is_stored(old(), reader.inputs[3]) && is_f32(old(), reader.inputs[3]);
    if (reader.op != "Add") return false;
    const ValueId added = reader.inputs[reader.inputs[0] == value ? 1 : 0];
    if (added == value || !is_stored(old(), added) || !is_f32(old(), added)) return false;
    // Its channels are where the product has them.
    const Shape& operand = old().type(added).shape;
    const int axis = (old().node(old().value(value).producer).op == "Conv" ? 1 : shape.rank() - 1) -
                     shape.rank() + operand.rank();
    return axis >= 0 && operand.rank() <= shape.rank() && operand[axis] == operand.element_count() &&
           operand[axis] == shape[axis + shape.rank() - operand.rank()];
  }

  // The same node with the excess taken off what it adds, or added to the mean that it subtracts.
  void take_off(const Node& node, const std::vector<double>& excess) {
    std::vector<Var> inputs = rewrite_.now(node.inputs);
    const bool normalization = node.op == "BatchNormalization";
    const std::size_t at = normalization ? 3 : is_stored(old(), node.inputs[1]) ? 1 : 0;
    inputs[at] = less(node.inputs[at], excess, normalization ? -1 : 1);
    rewrite_.replace(node, rewrite_.builder().node(node.op, inputs, node.attributes,
                                                   static_cast<int>(node.outputs.size())));
  }

  // What is stored, less `sign` times the excess.
  Var less(ValueId stored, const std::vector<double>& excess, double sign = 1) {
    Tensor data = old().value(stored).data.clone();
    for (std::size_t i = 0; i < excess.size(); ++i)
      data.set(static_cast<std::int64_t>(i), data.at(static_cast<std::int64_t>(i)) - sign * excess[i]);
    return rewrite_.builder().constant(data, old().value(stored).name + ".i8");
  }

  Var scales(const std::vector<float>& weight_scales, float input_scale) {
    Tensor tensor(ElementType::f32, {static_cast<std::int64_t>(weight_scales.size())});
    for (std::size_t i = 0; i < weight_scales.size(); ++i)
      tensor.set(static_cast<std::int64_t>(i), static_cast<double>(weight_scales[i] * input_scale));
    return rewrite_.builder().constant(tensor);
  }

  // A convolution's bias is a value a channel; that of Gemm broadcasts by itself.
  Var bias(const Node& node, const Candidate& product, int rank) {
    return along_channels(rewrite_.now(node.inputs[2]), product, rank);
  }

  Var along_channels(Var value, const Candidate& product, int rank) {
    if (!product.convolution) return value;
    std::vector<std::int64_t> extents(static_cast<std::size_t>(rank - 1), 1);
    extents[0] = value.shape()[0];
    return op::reshape(value, Shape(extents));
  }

  Rewrite rewrite_;
  QuantizeOptions options_;
  ByteMoves moves_;
  const RangeTable& given_;
  RangeTable ranges_;
  std::map<ValueId, Bytes> bytes_;
  std::map<ValueId, Var> filled_;                           // of bytes_, where rows are filled up
  std::vector<std::optional<graph::NodeId>> sole_readers_;  // by value
  std::map<graph::NodeId, std::vector<double>> owed_;  // by a product's reader: the excess that it takes off
};

}  // namespace

ByteScale byte_scale(const ValueRange& range) {
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  const auto scale = static_cast<float>((high - low) / largest_byte);
  if (!(scale > 0)) return {};
  const double zero = std::nearbyint(-low / static_cast<double>(scale));
  return {.scale = scale, .zero_point = static_cast<std::int32_t>(std::clamp(zero, 0.0, largest_byte))};
}

std::vector<graph::NodeId> products_to_quantize(const Graph& model, const QuantizeOptions& options) {
  std::vector<graph::NodeId> products;
  for (std::size_t i = 0; i < model.node_count(); ++i)
    if (candidate(model, model.nodes()[i], options)) products.push_back(graph::NodeId(i));
  return products;
}

int channel_axis(const Graph& model, ValueId value) {
  const bool image = std::ranges::any_of(model.nodes(), [&](const Node& node) {
    return op::is_convolution(op::traits_of(node.op).product_kind) && node.inputs[0] == value;
  });
  return image ? 1 : model.type(value).shape.rank() - 1;
}

std::vector<ValueId> values_to_calibrate(const Graph& model, const QuantizeOptions& options) {
  std::vector<ValueId> values;
  for (const graph::NodeId product : products_to_quantize(model, options)) {
    const ValueId read = model.node(product).inputs[0];
    if (std::ranges::find(values, read) == values.end()) values.push_back(read);
  }
  const ByteMoves moves(model, [&](const Node& node) { return candidate(model, node, options).has_value(); });
  for (std::size_t i = 0; i < model.node_count(); ++i)
    if (const auto term = moves.term_in_bytes(graph::NodeId(i))) {
      const ValueId read = model.nodes()[i].inputs[*term];
      if (std::ranges::find(values, read) == values.end()) values.push_back(read);
    }
  return values;
}

Graph quantize(const Graph& model, const RangeTable& ranges, const QuantizeOptions& options) {
  const Graph products =
      expand_transposed(model, [&](const Node& node) { return is_taken(model, node, ranges, options); });
  return Quantizer(products, ranges, options).run();
}

}  // namespace superstep::transform
