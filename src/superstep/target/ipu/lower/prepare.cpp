#include "superstep/target/ipu/lower/prepare.h"

#include <algorithm>
#include <functional>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/channel_statistics.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/sequence/recurrent_gradient.h"
#include "superstep/op/training/optimizer.h"
#include "superstep/transform/expand.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::ipu {
namespace {

using op::Var;

bool is_training_normalization(const graph::Graph& /*graph*/, const graph::Node& node) {
  return node.op == "BatchNormalization" && node.attributes.integer("training_mode", 0) != 0;
}

Var mixed(Var running, Var batch, double momentum) {
  return running * momentum + op::cast(batch, running.element()) * (1.0 - momentum);
}

void normalize_by_moments(transform::Rewrite& rewrite, const graph::Node& node) {
  const std::vector<Var> inputs = rewrite.now(node.inputs);
  const op::ChannelMoments moments = op::channel_moments(inputs[0]);
  const double momentum = node.attributes.number("momentum", 0.9);  // ONNX's default
  graph::Attributes attributes = node.attributes;
  attributes.erase("training_mode");
  const auto as_statistics = [&](Var value) { return op::cast(value, inputs[3].element()); };
  std::vector<Var> outputs{rewrite.builder().node1(
      "BatchNormalization",
      {inputs[0], inputs[1], inputs[2], as_statistics(moments.mean), as_statistics(moments.variance)},
      attributes)};
  if (node.outputs.size() > 1) outputs.push_back(mixed(inputs[3], moments.mean, momentum));
  if (node.outputs.size() > 2) outputs.push_back(mixed(inputs[4], moments.variance, momentum));
  rewrite.replace(node, outputs);
}

// Normalisations of groups of channels, sample by sample.
bool is_grouped_normalization(const graph::Graph& graph, const graph::Node& node) {
  if (node.op != "InstanceNormalization" && node.op != "GroupNormalization") return false;
  return graph.type(node.inputs[0]).shape.element_count() > 0;
}

// `count` numbers, each `times` times.
Var repeated(Var numbers, std::int64_t count, std::int64_t times) {
  return op::reshape(op::expand(op::reshape(numbers, {count, 1}), {count, times}), {count * times});
}

// Groups of samples become channels of one sample, so that statistics and scaling are cut anywhere:
// normalisation by their moments.
void normalize_by_group_moments(transform::Rewrite& rewrite, const graph::Node& node) {
  const std::vector<Var> inputs = rewrite.now(node.inputs);
  const Var x = inputs[0];
  const std::int64_t samples = x.shape()[0], channels = x.shape()[1];
  const std::int64_t groups = node.attributes.integer("num_groups", channels), of_group = channels / groups;
  const std::int64_t positions = x.shape().element_count() / (samples * channels);
  const op::ChannelMoments moments =
      op::channel_moments(op::reshape(x, {1, samples * groups, of_group * positions}));
  // Scale and bias are a channel's or a group's.
  const auto of_samples = [&](Var numbers) {
    const Var all = repeated(numbers, numbers.shape()[0], channels / numbers.shape()[0]);
    return op::reshape(op::expand(op::reshape(all, {1, channels}), {samples, channels}),
                       {samples * channels});
  };
  const auto of_channels = [&](Var numbers) { return repeated(numbers, samples * groups, of_group); };
  const Var rows = op::reshape(x, {1, samples * channels, positions});
  // Without an epsilon: ONNX's default.
  const Var y = rewrite.builder().node1("BatchNormalization",
                                        {rows, of_samples(inputs[1]), of_samples(inputs[2]),
                                         of_channels(moments.mean), of_channels(moments.variance)},
                                        {{"epsilon", node.attributes.number("epsilon", 1e-5)}});
  rewrite.replace(node, std::vector<Var>{op::reshape(y, x.shape())});
}

// The first place of the best is what an order of one element gives, which parts of a line can make.
bool finds_first_place(const graph::Graph& graph, const graph::Node& node) {
  if (node.op != "ArgMax" && node.op != "ArgMin") return false;
  return node.attributes.integer("select_last_index", 0) == 0 &&
         graph.type(node.inputs[0]).shape.element_count() > 0;
}

// NaN, which an order has as larger than any number, is found by both.
void find_with_its_value(transform::Rewrite& rewrite, const graph::Node& node) {
  const Var x = rewrite.now(node.inputs[0]);
  const bool turned = node.op == "ArgMin" && is_floating(x.element());
  const Var place =
      op::top_k(turned ? -x : x, 1, node.attributes.integer("axis", 0), turned || node.op == "ArgMax")
          .indices;
  rewrite.replace(node, std::vector<Var>{op::reshape(place, rewrite.old().type(node.outputs[0]).shape)});
}

// Cells are cut by samples, so that every tile has all weights (and in a gradient a partial sum for each).
// Where a tile cannot have them the steps are unrolled: their products are cut like any other.
bool is_too_large_a_cell(const graph::Graph& graph, const graph::Node& node) {
  if (node.op == op::recurrent_gradient_operator) return true;  // there are no vertices of it
  const bool gradient = node.op == "superstep.LSTMGradient";
  if (!gradient && node.op != "LSTM" && node.op != "GRU" && node.op != "RNN") return false;
  constexpr std::size_t most_bytes = 560'000;  // of a tile
  std::size_t bytes = 0;
  for (const std::size_t i : {1u, 2u}) {
    const graph::ValueType& type = graph.type(node.inputs[i]);
    bytes += static_cast<std::size_t>(type.shape.element_count()) * size_in_bytes(type.element);
  }
  return (gradient ? 2 : 1) * bytes > most_bytes;
}

// Inputs of one tensor in ONNX's optimisers: itself, its gradient and its buffers; 0 for other operators.
std::size_t optimizer_parts(const graph::Node& node) {
  return node.op == "Adagrad" || node.op == "Momentum" ? 3 : node.op == "Adam" ? 4 : 0;
}

bool optimizes_several(const graph::Graph& /*graph*/, const graph::Node& node) {
  const std::size_t parts = optimizer_parts(node);
  return parts > 0 && node.inputs.size() > 2 + parts;
}

// A node a tensor: inputs are rate, count, then all tensors, all gradients and each of the buffers in turn.
void optimize_apart(transform::Rewrite& rewrite, const graph::Node& node) {
  const std::vector<Var> all = rewrite.now(node.inputs);
  const std::size_t parts = optimizer_parts(node), count = (all.size() - 2) / parts;
  std::vector<Var> results(node.outputs.size());
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    std::vector<Var> inputs{all[0], all[1]};
    for (std::size_t part = 0; part < parts; ++part) inputs.push_back(all[2 + part * count + tensor]);
    const std::vector<Var> updated =
        rewrite.builder().node(node.op, inputs, node.attributes, static_cast<int>(parts) - 1);
    for (std::size_t part = 0; part + 1 < parts; ++part)
      if (const std::size_t i = part * count + tensor; i < results.size() && node.outputs[i].valid())
        results[i] = updated[part];
  }
  rewrite.replace(node, results);
}

bool transforms_several_axes(const graph::Graph& /*graph*/, const graph::Node& node) {
  return node.op == "superstep.Fourier" && node.attributes.integers("axes").size() > 1;
}

// One axis after the other: each is cut along the others, so that no tile needs a whole volume.
void transform_axis_by_axis(transform::Rewrite& rewrite, const graph::Node& node) {
  std::vector<Var> parts = rewrite.now(node.inputs);
  graph::Attributes attributes = node.attributes;
  for (const std::int64_t axis : node.attributes.integers("axes")) {
    attributes.set("axes", std::vector<std::int64_t>{axis});
    parts = rewrite.builder().node(node.op, parts, attributes, 2);
    attributes.set("scale", 1.0);
  }
  rewrite.replace(node, parts);
}

// A pass that rewrites the nodes that `wanted` takes.
using Wanted = bool (*)(const graph::Graph& graph, const graph::Node& node);
using Rewriting = void (*)(transform::Rewrite& rewrite, const graph::Node& node);

std::function<bool(graph::Graph&)> rewriting(Wanted wanted, Rewriting each) {
  return [wanted, each](graph::Graph& graph) {
    if (std::ranges::none_of(graph.nodes(), [&](const graph::Node& node) { return wanted(graph, node); }))
      return false;
    graph = transform::rewrite(graph, [&](transform::Rewrite& rewrite, const graph::Node& node) {
      wanted(rewrite.old(), node) ? each(rewrite, node) : rewrite.keep(node);
    });
    return true;
  };
}

// Its steps need the norms of whole tensors, which lie on all tiles.
bool has_a_ratio_of_norms(const graph::Graph& /*graph*/, const graph::Node& node) {
  return node.op == "superstep.Lamb";
}

void unroll(transform::Rewrite& rewrite, const graph::Node& node) {
  rewrite.replace(node, transform::decomposition(rewrite, node));
}

// Adam's step from zero at the rate -1 is the direction, moments and their corrections with it: tiles count
// steps there, and have no f64 for them.
void optimize_by_norms(transform::Rewrite& rewrite, const graph::Node& node) {
  const std::vector<Var> in = rewrite.now(node.inputs);
  const graph::Attributes& a = node.attributes;
  const Var p = in[0];
  op::Builder& b = rewrite.builder();
  const op::AdamStep step = op::adam(op::constant_of_shape(b, p.element(), p.shape()), in[1], in[2], in[3],
                                     in[4], b.scalar(in[5].element(), -1),
                                     {.beta1 = a.number("beta1", 0.9),
                                      .beta2 = a.number("beta2", 0.999),
                                      .epsilon = a.number("epsilon", 1e-6)});
  Var direction = step.parameter;
  if (const double decay = a.number("weight_decay", 0); decay != 0) direction = direction + p * decay;
  const auto norm = [](Var x) { return op::reduce_l2(op::cast(x, ElementType::f32)); };
  const Var weight = norm(p), length = norm(direction), zero = b.scalar(ElementType::f32, 0);
  const Var both = op::logical_and(op::greater(weight, zero), op::greater(length, zero));
  const Var ratio = op::where(both, weight / length, b.scalar(ElementType::f32, 1));
  const Var factor = op::cast(op::cast(in[5], ElementType::f32) * ratio, p.element());
  rewrite.replace(node, std::vector<Var>{p - direction * factor, step.m, step.v});
}

}  // namespace

std::vector<transform::Pass> graph_passes() {
  std::vector<transform::Pass> passes{
      {.name = "normalize_by_moments",
       .run = rewriting(is_training_normalization, normalize_by_moments),
       .summary = "batch normalization in training: moments in parts, where tiles had whole channels",
       .rounding = transform::Pass::sums},
      {.name = "normalize_by_group_moments",
       .run = rewriting(is_grouped_normalization, normalize_by_group_moments),
       .summary = "normalization of groups and instances: the same for groups",
       .rounding = transform::Pass::sums},
      {.name = "find_with_its_value",
       .run = rewriting(finds_first_place, find_with_its_value),
       .summary = "the place of the largest with its value: parts of a line are compared, where tiles had "
                  "whole lines"},
      {.name = "scan_in_blocks",
       .run = rewriting(is_long_scan, scan_in_blocks),
       .summary = "running sums of few long lines: of blocks, of the blocks' sums, and both together",
       .rounding = transform::Pass::sums},
      {.name = "unroll_large_cells",
       .run = rewriting(is_too_large_a_cell, unroll),
       .summary = "recurrent cells whose weights a tile cannot hold, and gradients of any but an LSTM, as "
                  "their steps",
       .rounding = transform::Pass::sums},
      {.name = "optimize_by_norms",
       .run = rewriting(has_a_ratio_of_norms, optimize_by_norms),
       .summary = "LAMB as its moments, the norms of whole tensors, and the step",
       .rounding = transform::Pass::sums},
      {.name = "optimize_apart",
       .run = rewriting(optimizes_several, optimize_apart),
       .summary = "optimizers of several tensors as one a tensor"},
      {.name = "transform_axis_by_axis",
       .run = rewriting(transforms_several_axes, transform_axis_by_axis),
       .summary = "Fourier transforms of volumes: one axis after the other, cut along the rest",
       .rounding = transform::Pass::sums},
  };
  const auto standard = transform::standard_passes();
  passes.insert(passes.end(), standard.begin(), standard.end());
  return passes;
}

graph::Graph prepare_for_tiles(graph::Graph graph, std::span<const std::string> left_out) {
  return transform::run_passes(std::move(graph), transform::without(graph_passes(), left_out));
}

}  // namespace superstep::target::ipu
