#include "superstep/target/cpu/passes/decompose.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/channel_statistics.h"
#include "superstep/op/sequence/recurrent_gradient.h"
#include "superstep/target/cpu/lower/operators/lower_grid_sample.h"
#include "superstep/target/cpu/lower/operators/recurrent/lower_gru.h"
#include "superstep/target/cpu/lower/operators/recurrent/lower_recurrent.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/transform/expand.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using op::Builder;
using op::Var;
using transform::Rewrite;

// Always as what they are made of: kernels run those parts, and so they cost less than their own definition.
// A choice of this target, for which each operator stands here alone; another with a `decompose` that nobody
// lists is evaluated by its definition.
constexpr std::string_view composites[] = {"GlobalAveragePool",
                                           "GlobalMaxPool",
                                           "GlobalLpPool",
                                           "BatchNormalization",
                                           "InstanceNormalization",
                                           "GroupNormalization",
                                           "RMSNormalization",
                                           "LpNormalization",
                                           "LRN",
                                           "MeanVarianceNormalization",
                                           "Attention",
                                           "RotaryEmbedding",
                                           "LinearAttention",
                                           "CausalConvWithState",
                                           "RNN",
                                           op::recurrent_gradient_operator,
                                           "superstep.StochasticDepth",
                                           "SoftmaxCrossEntropyLoss",
                                           "NegativeLogLikelihoodLoss",
                                           "Einsum",
                                           "Tile",
                                           "Trilu",
                                           "SpaceToDepth",
                                           "Upsample",
                                           "EyeLike",
                                           "Hardmax",
                                           "ReverseSequence",
                                           "Col2Im",
                                           "CenterCropPad",
                                           "MaxUnpool",
                                           "STFT",
                                           "OneHot",
                                           "Compress",
                                           "TensorScatter",
                                           "CumProd",
                                           "AffineGrid",
                                           "RoiAlign",
                                           "MaxRoiPool",
                                           "DeformConv",
                                           "ArrayFeatureExtractor",
                                           "Binarizer",
                                           "Normalizer",
                                           "Scaler",
                                           "LinearRegressor",
                                           "DynamicQuantizeLinear",
                                           "superstep.StraightThrough",
                                           "superstep.Lamb",
                                           "QLinearMatMul",
                                           "QLinearConv",
                                           "Adagrad",
                                           "Momentum",
                                           "Adam"};

// The same of floating types: of integers the parts are not there, or round otherwise.
constexpr std::string_view floating_composites[] = {"ReduceL1", "ReduceL2", "ReduceLogSum",
                                                    "ReduceLogSumExp"};

bool is_one_of(std::span<const std::string_view> names, std::string_view op) {
  return std::ranges::find(names, op) != names.end();
}

bool is_recurrent(const Node& node) { return node.op == "LSTM" || node.op == "superstep.LSTMGradient"; }

// Padding but by a constant along all axes, which copies do.
bool pads_otherwise(const Node& node) {
  return node.op == "Pad" && (node.attributes.text("mode", "constant") != "constant" ||
                              (node.inputs.size() > 3 && node.inputs[3].valid()));
}

// A product whose kernels would have to add anything but a value a column.
bool adds_matrix(const Graph& graph, const Node& node) {
  if (node.op != "Gemm" || node.inputs.size() < 3 || !node.inputs[2].valid()) return false;
  const Shape& added = graph.type(node.inputs[2]).shape;
  const std::int64_t columns = graph.type(node.outputs[0]).shape[1];
  const bool a_row =
      added.element_count() == columns && added.rank() > 0 && added[added.rank() - 1] == columns;
  return !a_row || node.attributes.number("beta", 1) != 1;
}

// The product, and the sum behind it, which its kernel takes as what follows.
std::vector<Var> product_and_sum(const Node& node, const std::vector<Var>& in) {
  graph::Attributes attributes{{"alpha", node.attributes.number("alpha", 1)},
                               {"transA", node.attributes.integer("transA", 0)},
                               {"transB", node.attributes.integer("transB", 0)}};
  const Var product = in[0].builder().node1("Gemm", {in[0], in[1]}, std::move(attributes));
  const double beta = node.attributes.number("beta", 1);
  if (beta == 0) return {product};  // what is added then is not read: it may be NaN
  return {product + (beta == 1 ? in[2] : in[2] * beta)};
}

// An optimizer's kernel writes states where they lie. Where something else becomes of one (the state as it
// was, in a step that is skipped), what it gives is computed beside them.
bool is_not_the_update(const Graph& graph, const Node& node) {
  return is_optimizer(node) && graph.value(node.inputs[0]).kind == graph::ValueKind::state &&
         graph.update_of(node.inputs[0]) != node.outputs[0];
}

bool is_decomposed(const Graph& graph, const Node& node) {
  if (is_not_the_update(graph, node)) return true;
  if (is_recurrent(node)) return !has_lstm_kernel(graph, node);
  if (node.op == "GRU") return !has_gru_kernel(graph, node);
  if (node.op == "GridSample") return !has_grid_sample_kernel(graph, node);
  if (adds_matrix(graph, node) || pads_otherwise(node)) return true;
  if (is_one_of(floating_composites, node.op)) return is_floating(graph.type(node.inputs[0]).element);
  return is_composite(node.op);
}

Var as_channels(Var value, Var x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape().rank()), 1);
  extents[1] = x.shape()[1];
  return op::reshape(op::cast(value, x.element()), Shape(extents));
}

// y = x * factor + shift, with factor and shift of each channel; in training from the batch's own moments.
std::vector<Var> batch_normalization(const Node& node, const std::vector<Var>& in) {
  const Var x = in[0];
  const bool training = node.attributes.integer("training_mode", 0) != 0;
  Var mean = in[3], variance = in[4];
  if (training) {
    const bool over_parts = node.attributes.integer("over_parts", 0) != 0;
    const op::ChannelMoments moments =
        over_parts ? op::channel_moments_over_parts(x) : op::channel_moments(x);
    mean = op::cast(moments.mean, in[3].element());
    variance = op::cast(moments.variance, in[4].element());
  }
  const Var inverse = op::reciprocal(op::sqrt(variance + node.attributes.number("epsilon", 1e-5)));
  const Var factor = op::cast(in[1], inverse.element()) * inverse;
  const Var shift = op::cast(in[2], mean.element()) - mean * factor;
  std::vector<Var> result = {x * as_channels(factor, x) + as_channels(shift, x)};
  if (!training) return result;
  const double kept = node.attributes.number("momentum", 0.9);
  result.push_back(in[3] * kept + mean * (1 - kept));
  result.push_back(in[4] * kept + variance * (1 - kept));
  return result;
}

// ---- normalisation after a convolution -----------------------------------------------------------------

// What the first of some conversions reads; the value itself where it does not come from one.
ValueId source_of_casts(const Graph& graph, ValueId id) {
  while (id.valid() && graph.value(id).kind == graph::ValueKind::computed) {
    const Node& node = graph.node(graph.value(id).producer);
    if (node.op != "Cast") break;
    id = node.inputs[0];
  }
  return id;
}

bool is_read_once_through_casts(const Graph& graph, ValueId id, const std::vector<int>& uses) {
  const ValueId source = source_of_casts(graph, id);
  for (; id != source; id = graph.node(graph.value(id).producer).inputs[0])
    if (uses[id.index()] != 1) return false;
  return uses[source.index()] == 1;
}

// The convolution that makes the input of a normalisation at inference and is read by nothing else; null
// where there is none. Its weights then take the factor, and the shift becomes its bias. In reduced precision
// conversions stand before its weights and behind its result.
const Node* convolution_before(const Graph& graph, const Node& node, const std::vector<int>& uses) {
  if (node.op != "BatchNormalization" || node.attributes.integer("training_mode", 0) != 0) return nullptr;
  const ValueId x = source_of_casts(graph, node.inputs[0]);
  if (graph.value(x).kind != graph::ValueKind::computed ||
      !is_read_once_through_casts(graph, node.inputs[0], uses))
    return nullptr;
  const Node& conv = graph.node(graph.value(x).producer);
  const auto is_parameter = [&](std::size_t input) {
    if (input >= conv.inputs.size() || !conv.inputs[input].valid()) return true;
    const graph::Value& source = graph.value(source_of_casts(graph, conv.inputs[input]));
    return source.kind != graph::ValueKind::computed && is_floating(source.type.element);
  };
  const bool f32 = graph.type(node.inputs[0]).element == ElementType::f32;
  return conv.op == "Conv" && f32 && is_parameter(1) && is_parameter(2) ? &conv : nullptr;
}

// Whether a parameter is one value a channel of x [N, C, ...], or one for all: only its axis of channels may
// be longer than 1.
bool is_of_channels(const Graph& graph, ValueId id, const Shape& x) {
  const graph::Value& value = graph.value(id);
  if (value.kind == graph::ValueKind::computed || value.type.element != ElementType::f32) return false;
  const Shape& shape = value.type.shape;
  if (shape.rank() > x.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int of_x = axis + x.rank() - shape.rank();
    if (shape[axis] != 1 && (of_x != 1 || shape[axis] != x[1])) return false;
  }
  return true;
}

// y = x * factor or y = x + shift behind a convolution that nothing else reads, as frozen normalisations are
// written: the convolution, whose weights and bias are parameters, takes them.
struct Affine {
  const Node* conv = nullptr;
  std::size_t parameter = 1;  // which input of the node
};
Affine affine_behind_convolution(const Graph& graph, const Node& node, const std::vector<int>& uses) {
  if (node.op != "Mul" && node.op != "Add") return {};
  for (std::size_t side : {0u, 1u}) {
    const graph::Value& x = graph.value(node.inputs[side]);
    if (x.kind != graph::ValueKind::computed || uses[node.inputs[side].index()] != 1) continue;
    const Node& conv = graph.node(x.producer);
    if (conv.op != "Conv" || x.type.element != ElementType::f32 || x.type != graph.type(node.outputs[0]))
      continue;
    const bool biased = conv.inputs.size() > 2 && conv.inputs[2].valid();
    // Without a bias of its own the sum is one: the plan makes it so.
    if (node.op == "Add" && !biased) continue;
    const auto is_parameter = [&](std::size_t input) {
      const graph::Value& value = graph.value(conv.inputs[input]);
      return value.kind != graph::ValueKind::computed && value.type.element == ElementType::f32;
    };
    if (!is_parameter(1) || (biased && !is_parameter(2))) continue;
    if (is_of_channels(graph, node.inputs[1 - side], x.type.shape)) return {&conv, 1 - side};
  }
  return {};
}

void fold_affine(Rewrite& rewrite, const Node& node, const Affine& affine) {
  const std::vector<Var> in = rewrite.now(affine.conv->inputs);
  const Var weights = in[1], parameter = rewrite.now(node.inputs[affine.parameter]);
  const std::int64_t channels = weights.shape()[0];
  const Var values = parameter.shape().element_count() == 1
                         ? op::expand(op::reshape(parameter, Shape{1}), Shape{channels})
                         : op::reshape(parameter, Shape{channels});
  std::vector<Var> inputs = in;
  if (node.op == "Add") {
    inputs[2] = in[2] + values;
  } else {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(weights.shape().rank()), 1);
    extents[0] = channels;
    inputs[1] = weights * op::reshape(values, Shape(extents));
    if (in.size() > 2 && in[2].valid()) inputs[2] = in[2] * values;
  }
  const Var y = rewrite.builder().node("Conv", inputs, affine.conv->attributes)[0];
  rewrite.replace(node, std::span(&y, 1));
}

// The type that what a convolution reads was rounded to on the way.
ElementType rounded_type(const Graph& graph, ValueId id) {
  const graph::Value& value = graph.value(id);
  if (value.kind != graph::ValueKind::computed || graph.node(value.producer).op != "Cast")
    return value.type.element;
  const ElementType before = graph.type(graph.node(value.producer).inputs[0]).element;
  return before == ElementType::f16 ? before : value.type.element;
}

void fold_into_convolution(Rewrite& rewrite, const Node& node, const Node& conv) {
  const std::vector<Var> in = rewrite.now(node.inputs);
  const auto parameter = [&](std::size_t input) {
    return op::cast(rewrite.now(source_of_casts(rewrite.old(), conv.inputs[input])), ElementType::f32);
  };
  const Var x = rewrite.now(conv.inputs[0]), weights = parameter(1);
  const Var inverse = op::reciprocal(op::sqrt(in[4] + node.attributes.number("epsilon", 1e-5)));
  const Var factor = in[1] * inverse;
  Var shift = in[2] - in[3] * factor;
  if (conv.inputs.size() > 2 && conv.inputs[2].valid()) shift = shift + parameter(2) * factor;
  std::vector<std::int64_t> extents(static_cast<std::size_t>(weights.shape().rank()), 1);
  extents[0] = weights.shape()[0];
  const Var scaled =
      op::cast(weights * op::reshape(factor, Shape(extents)), rounded_type(rewrite.old(), conv.inputs[1]));
  const Var y =
      op::cast(rewrite.builder().node1(
                   "Conv", {x, op::cast(scaled, x.element()), op::cast(shift, x.element())}, conv.attributes),
               ElementType::f32);
  rewrite.replace(node, std::span(&y, 1));
}

std::vector<Var> parts_of(Rewrite& rewrite, const Node& node) {
  if (node.op == "BatchNormalization") return batch_normalization(node, rewrite.now(node.inputs));
  if (node.op == "Gemm") return product_and_sum(node, rewrite.now(node.inputs));
  return transform::decomposition(rewrite, node);
}

void replace(Rewrite& rewrite, const Node& node) {
  std::vector<Var> results = parts_of(rewrite, node);
  results.resize(node.outputs.size());
  rewrite.replace(node, results);
}

}  // namespace

bool is_composite(std::string_view op) {
  return is_one_of(composites, op) || is_one_of(floating_composites, op);
}

Graph fold_normalizations(const Graph& graph) {
  const std::vector<int> uses = graph.use_counts();
  return transform::prune(transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    if (const Node* conv = convolution_before(graph, node, uses))
      fold_into_convolution(rewrite, node, *conv);
    else if (const Affine affine = affine_behind_convolution(graph, node, uses); affine.conv)
      fold_affine(rewrite, node, affine);
    else
      rewrite.keep(node);
  }));
}

Graph decompose(const Graph& graph) {
  Graph result = graph;
  // A decomposition may be made of operators that are decomposed themselves.
  while (std::ranges::any_of(result.nodes(), [&](const Node& node) { return is_decomposed(result, node); }))
    result = transform::rewrite(result, [](Rewrite& rewrite, const Node& node) {
      is_decomposed(rewrite.old(), node) ? replace(rewrite, node) : rewrite.keep(node);
    });
  return transform::prune(result);
}

}  // namespace superstep::target::cpu
