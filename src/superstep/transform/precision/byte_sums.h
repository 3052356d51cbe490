// Sums of what products on bytes lead to, as residual blocks have them: one term is added as bytes.
#pragma once

#include <optional>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/graph/graph.h"

namespace superstep::transform {

// A sum is taken together with the later of its two products. What the earlier one left was rounded for the
// next product all the same, or is rounded for this sum, and is read as it was rounded: a quarter of the
// bytes, and nothing keeps it in f32 beside them. (So do runtimes that give an Add inputs behind
// DequantizeLinear.)
class ByteSums {
 public:
  // `takes`: the products whose first input becomes bytes.
  ByteSums(const graph::Graph& graph, FunctionRef<bool(const graph::Node&)> takes);

  // Which input of this node, an Add of two values of one shape, may be bytes: it comes from a product on
  // bytes through element-wise operators, and the other one comes from a later one that nobody else reads.
  std::optional<std::size_t> term(std::size_t node) const { return terms_[node]; }

 private:
  using Product = std::optional<std::size_t>;  // a node

  void visit(const graph::Graph& graph, std::size_t node, bool taken);
  std::optional<std::size_t> choose(const graph::Graph& graph, const graph::Node& sum) const;

  std::vector<std::optional<std::size_t>> terms_;  // by node
  std::vector<std::size_t> readers_;               // by value
  // By value: the latest product on bytes that it comes from element by element; and that product where the
  // way is a chain of operators with one reader each.
  std::vector<Product> made_by_, chain_of_;
};

}  // namespace superstep::transform
