// What a rule of the batch-axis analysis sees: one node, and where the batch is in its inputs.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/transform/batch_axis.h"

namespace superstep::transform {

struct BatchSite {
  const graph::Graph& graph;
  const graph::Node& node;
  std::vector<BatchAxis> inputs;  // as many as the node has; left-out ones are constant
  bool averages_sums = false;     // BatchAxisOptions
  std::size_t output = 0;         // which output is asked for

  bool has(std::size_t input) const { return input < node.inputs.size() && node.inputs[input].valid(); }
  const Shape& shape(std::size_t input) const { return graph.type(node.inputs[input]).shape; }
  const Shape& output_shape() const { return graph.type(node.outputs[output]).shape; }
  bool is(std::size_t input, BatchKind kind) const {
    return input < inputs.size() && inputs[input].kind == kind;
  }
  // The elements of an integer input, where it is constant.
  std::optional<std::vector<std::int64_t>> integers(std::size_t input) const;
  // A list that older operator sets have as an attribute and newer ones as an input.
  std::vector<std::int64_t> integers(std::string_view attribute, std::size_t input) const;

  // Is every input but `these` constant?
  bool others_constant(std::initializer_list<std::size_t> these) const;
};

BatchAxis along(int axis, std::int64_t rows = 1);
BatchAxis same_everywhere();  // a constant whose elements are all the same
BatchAxis any_constant();     // a constant that may differ along every axis
BatchAxis reduced_over_batch();
BatchAxis mixes(const char* why);

// At least one input is not constant, and none is mixed.
struct BatchRule {
  std::string_view op;
  BatchAxis (*apply)(const BatchSite& site);
};

std::span<const BatchRule> product_batch_rules();    // products, convolutions, pooling
std::span<const BatchRule> layout_batch_rules();     // views, transposes, cutting, joining, gathering
std::span<const BatchRule> sequence_batch_rules();   // recurrent layers, attention
std::span<const BatchRule> reduction_batch_rules();  // reductions, softmax, losses, normalisations

// Element by element, with broadcasting; for every operator that is_elementwise().
BatchAxis elementwise_batch_rule(const BatchSite& site);

// What a node makes of constant inputs alone.
BatchAxis constant_batch_rule(const BatchSite& site);

}  // namespace superstep::transform
