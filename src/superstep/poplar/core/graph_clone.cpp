// Several clones of a tensor in one.
#include <poplar/Graph.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"

namespace poplar {
namespace {

// Places of the copies, with a part of a variable for each.
struct Placed {
  Interval places;
  Tensor copies;  // of n rows
};

void check_method(const Tensor& tensor, TensorCloneMethod method) {
  const bool new_order =
      method == TensorCloneMethod::CREATE_NEW_ORDER ||
      (method == TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES && tensor.containsAliases());
  if (new_order)
    throw poplar_error("cloneN of " + core::describe(tensor) + " by " + toString(method) +
                       ": a new order has no regions to lay down one after the other");
}

}  // namespace

Tensor Graph::cloneN(const Type& type, const Tensor& tensor, unsigned n, const DebugContext& context,
                     TensorCloneMethod method, TensorCloneDuplicationMethod duplication) {
  if (n == 0) throw poplar_error("cloneN of " + core::describe(tensor) + ": no clones");
  if (duplication == TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION) {
    std::vector<Tensor> clones;
    for (unsigned i = 0; i < n; ++i) clones.push_back(clone(type, tensor, context, method).expand({0}));
    return concat(clones);
  }
  check_method(tensor, method);
  // What a tile has is one variable of n rows; elements that stand at several places are in it once.
  const TileToTensorMapping mapping = getTileMapping(tensor);
  std::vector<Placed> parts;
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    if (mapping[tile].empty()) continue;
    std::vector<std::size_t> firsts;
    const auto regions = getSortedContiguousRegions(tensor, mapping[tile], false, &firsts);
    std::map<std::size_t, std::size_t> at;  // where the elements of a first place are in the variable
    std::size_t columns = 0, i = 0;
    for (const auto& list : regions)
      for (const Interval& interval : list)
        if (const std::size_t first = firsts[i++]; at.emplace(first, columns).second)
          columns += interval.size();
    const Tensor rows = addVariable(type, {n, columns}, context);
    setTileMapping(rows, tile);
    i = 0;
    for (const auto& list : regions)
      for (const Interval& interval : list) {
        const std::size_t column = at.at(firsts[i++]);
        parts.push_back({interval, rows.slice(column, column + interval.size(), 1)});
      }
  }
  std::vector<std::size_t> shape = tensor.shape();
  shape.insert(shape.begin(), n);
  if (parts.empty()) return addVariable(type, shape, context);
  std::sort(parts.begin(), parts.end(),
            [](const Placed& a, const Placed& b) { return a.places.begin() < b.places.begin(); });
  std::vector<Tensor> copies;
  for (const Placed& part : parts) copies.push_back(part.copies);
  return concat(copies, 1).reshape(shape);
}

}  // namespace poplar
