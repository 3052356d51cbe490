// Where the samples of a batch are in a value, and what a rule that says so of a node's outputs sees: the
// node, and where they are in its inputs. The rules are in op/batch/rules.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::op {

enum class BatchKind : std::uint8_t {
  constant,    // the same whatever the samples are
  per_sample,  // slice i along `axis` depends on sample i / rows alone
  reduced,     // a sum or mean over samples of something per sample, or linear in such
  mixed,       // depends on several samples in another way, or nobody knows
};

struct BatchAxis {
  BatchKind kind = BatchKind::constant;
  int axis = 0;              // of a per-sample value
  std::int64_t rows = 1;     // slices along `axis` that belong to one sample, one after the other
  std::uint64_t varies = 0;  // of a constant: the axes (bit set) along which its elements may differ
  const char* why = "";      // of a mixed value: what its node does

  friend bool operator==(const BatchAxis& a, const BatchAxis& b) {
    return a.kind == b.kind && (a.kind != BatchKind::per_sample || (a.axis == b.axis && a.rows == b.rows));
  }
};

struct BatchSite {
  const graph::Graph& graph;
  const graph::Node& node;
  std::vector<BatchAxis> inputs;  // as many as the node has; left-out ones are constant
  bool averages_sums = false;     // as if sums over the batch were averaged over its parts first
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

// What a node makes of constant inputs alone (Traits::constants).
BatchAxis constant_batch_axis(const BatchSite& site);

}  // namespace superstep::op
