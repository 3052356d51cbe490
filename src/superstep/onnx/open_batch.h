// Constants of a graph that depend on its batch, as what they are at any batch: so that a file can leave it
// open.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/graph/graph.h"

namespace superstep::onnx {

// factors * batch + offsets, an integer each.
struct OfBatch {
  std::vector<std::int64_t> factors, offsets;
  std::int64_t at(std::size_t i, std::int64_t batch) const { return factors[i] * batch + offsets[i]; }
  bool is_fixed() const;  // whatever the batch
};

// A constant at any batch: integers that follow it, or a part that is repeated until it has extents that do.
struct OpenConstant {
  OfBatch values;              // the elements, or the extents
  std::optional<Tensor> part;  // what is repeated; else the elements are the value, of the constant's shape
};

// The graph's symbol for an extent that is `at_one` and `at_two` at two batches one apart, the first being
// `batch`: the factor of the batch; nothing where it does not follow it.
std::optional<std::int64_t> factor_of_batch(std::int64_t at_one, std::int64_t at_two, std::int64_t batch);

// The constants that differ between the graph at a batch and at the next one. `at` gives the graph at another
// batch, on which rules are tried. Target shapes of Reshape that can be -1 at the batch's place do not differ
// any more: they are changed in `one`. Throws Error (unsupported) naming the first that follows the batch in
// another way, or a node that is not in both.
std::map<graph::ValueId, OpenConstant> open_batch(graph::Graph& one, const graph::Graph& two,
                                                  std::int64_t batch,
                                                  FunctionRef<graph::Graph(std::int64_t batch)> at);

}  // namespace superstep::onnx
