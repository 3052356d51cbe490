#include "superstep/machine/rates/sums.h"

#include <cmath>

#include "superstep/machine/work.h"

namespace superstep::machine {
namespace {

// By what a product's multiply-adds grow where libraries round channels up to a multiple of 64.
double padding_of(const Shape& weights) {
  constexpr double width = 64;
  const auto padded = [](double extent) { return std::ceil(extent / width) * width / extent; };
  if (weights.rank() < 2) return 1;
  const auto outputs = static_cast<double>(weights[0]);
  return padded(outputs) * padded(static_cast<double>(weights.element_count()) / outputs);
}

// The weights that a kernel multiplies; null: it multiplies two activations, or nothing.
const graph::Value* weights_of(const graph::Graph& graph, const graph::Node& node) {
  if (node.inputs.size() < 2 || !node.inputs[1].valid()) return nullptr;
  const graph::Value& second = graph.value(node.inputs[1]);
  return second.kind == graph::ValueKind::computed || second.kind == graph::ValueKind::input ? nullptr
                                                                                             : &second;
}

}  // namespace

NetworkSums sums_of(const graph::Graph& graph, double samples) {
  constexpr double f32_bytes = 4;
  NetworkSums sums;
  for (const Work& work : works_of(graph, precision_from_name("f32"), {.fuse_across_layers = false})) {
    const double values = (work.read_bytes + work.write_bytes - work.weight_bytes) / f32_bytes / samples;
    sums.kernels += 1;
    sums.parameters += work.weight_bytes / f32_bytes;
    sums.tensors += work.weight_bytes > 0;
    const bool multiplies = work.kind == WorkKind::product || work.kind == WorkKind::recurrent ||
                            work.kind == WorkKind::attention;
    if (multiplies) {
      const graph::Node& node = graph.node(work.nodes.front());
      const double macs = work.flops / 2 / samples;
      if (node.attributes.integer("group", 1) > 1) {
        sums.grouped += macs;
        sums.grouped_elements += values;
        continue;
      }
      // What multiplies no weights multiplies two activations.
      (work.weight_bytes > 0 ? sums.macs : sums.attention) += macs;
      sums.product_elements += values;
      const graph::Value* weights = weights_of(graph, node);
      if (work.weight_bytes > 0) sums.padded += macs * (weights ? padding_of(weights->type.shape) : 1);
    } else {
      sums.other_elements += values;
    }
  }
  return sums;
}

}  // namespace superstep::machine
