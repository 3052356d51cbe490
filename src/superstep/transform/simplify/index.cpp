// Whole rows by number, written as a number for each element: what scatter_add and gather of frameworks
// become.
#include "superstep/op/move/gather.h"
#include "superstep/op/move/view.h"
#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {
namespace {

// The number of each row of `data`, [rows, 1, ...], where `indices` repeat it along all other axes, which are
// whole.
Var row_numbers(const Site& site, Var data, Var indices) {
  const Shape &all = data.shape(), &shape = indices.shape();
  const int rank = all.rank();
  if (rank < 2 || normalize_axis(site.node.attributes.integer("axis", 0), rank) != 0) return {};
  const Node* expand = site.made_by(indices, "Expand");
  if (!expand) return {};
  const Var numbers = site.input_of(*expand, 0);
  if (numbers.shape().rank() != rank || numbers.shape()[0] != shape[0]) return {};
  for (int axis = 1; axis < rank; ++axis)
    if (numbers.shape()[axis] != 1 || shape[axis] != all[axis]) return {};
  return numbers;
}

Var scatter_of_rows(const Site& site) {
  if (site.inputs[1].shape() != site.inputs[2].shape()) return {};
  const Var numbers = row_numbers(site, site.inputs[0], site.inputs[1]);
  if (!numbers.valid()) return {};
  const Shape vectors{numbers.shape()[0], 1};
  return op::scatter_nd(site.inputs[0], numbers.shape() == vectors ? numbers : op::reshape(numbers, vectors),
                        site.inputs[2], site.node.attributes.text("reduction", "none"));
}

Var gather_of_rows(const Site& site) {
  const Var numbers = row_numbers(site, site.inputs[0], site.inputs[1]);
  if (!numbers.valid()) return {};
  return op::gather(site.inputs[0], op::reshape(numbers, Shape{numbers.shape()[0]}), 0);
}

constexpr Rule rules[] = {
    {"ScatterElements", scatter_of_rows},
    {"GatherElements", gather_of_rows},
};

}  // namespace

std::span<const Rule> index_rules() { return rules; }

}  // namespace superstep::transform
