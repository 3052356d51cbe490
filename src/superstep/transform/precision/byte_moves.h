// Activations that only products on bytes read, through operators that move elements or compare them: these
// run on bytes too, and nothing becomes f32 in between.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/transform/precision/quantize.h"

namespace superstep::transform {

// Rounding to bytes is monotonic: the largest of some bytes is the byte of the largest value. So what a
// MaxPool, a Concat or a Reshape gives is the same, bit by bit, whether it is rounded before or after, as
// long as the scale is one: values that are joined so form families, and a family spans what its members
// span.
class ByteMoves {
 public:
  // `takes`: the products whose first input becomes bytes. `apart`: values that are rounded where they stand,
  // and that sums read in f32.
  ByteMoves(const graph::Graph& graph, FunctionRef<bool(const graph::Node&)> takes,
            const std::set<graph::ValueId>& apart = {});

  // With those values apart whose families span more than twice what they do themselves: one scale for all
  // would leave them less than seven bits. So are terms of sums that have no range.
  static ByteMoves within_ranges(const graph::Graph& graph, FunctionRef<bool(const graph::Node&)> takes,
                                 const RangeTable& ranges);

  // The operator that `value`, which products on bytes alone read, comes from on bytes: a MaxPool whose
  // indices nobody reads, a Concat, or one that moves elements. None: it is rounded where it stands.
  std::optional<graph::NodeId> moved_by(graph::ValueId value) const;

  // The input of this node, an Add, that is read as bytes (ByteSums); none: it adds what is f32.
  std::optional<std::size_t> term_in_bytes(graph::NodeId node) const;

  // Do products on bytes, sums that take it so, and what moves for them, read `value` and nobody else?
  bool in_bytes_alone(graph::ValueId value) const { return bytes_alone_[value.index()]; }

  // The ranges of `table`, each widened to those of its family.
  RangeTable widened(const RangeTable& table) const;

 private:
  std::size_t family(std::size_t value) const;

  const graph::Graph& graph_;
  std::vector<bool> moved_;                        // by node: it runs on bytes
  std::vector<std::optional<std::size_t>> terms_;  // by node: the input of a sum that may be bytes
  std::vector<bool> bytes_alone_;                  // by value
  std::vector<std::size_t> parents_;               // by value: the forest of families
};

}  // namespace superstep::transform
