#include "superstep/workload/packed_graph.h"

#include <numeric>

#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"

namespace superstep::workload {

PackedGraph::PackedGraph(op::Builder& builder, Var edge_index, Var batch)
    : batch_(batch), packs_(batch.shape()[0]), nodes_(batch.shape()[1]), edges_(edge_index.shape()[2]) {
  const op::NameScope scope(builder, "edges");
  source_ = end_of(edge_index, 0), target_ = end_of(edge_index, 1);
}

op::Var PackedGraph::as_rows(Var values) {
  const Shape& shape = values.shape();
  return op::reshape(values, {shape[0] * shape[1], shape[2]});
}
op::Var PackedGraph::as_nodes(Var rows) const { return op::reshape(rows, {packs_, nodes_, rows.shape()[1]}); }
op::Var PackedGraph::as_edges(Var rows) const { return op::reshape(rows, {packs_, edges_, rows.shape()[1]}); }

op::Var PackedGraph::is_there(Var index) {
  const Var zero = index.builder().constant(Tensor::scalar<std::int64_t>(0));
  const Var there = op::cast(op::greater_or_equal(index, zero), ElementType::f32);
  return op::unsqueeze(there, {2});
}

op::Var PackedGraph::at_sources(Var of_nodes) const { return op::gather_rows(of_nodes, source_); }
op::Var PackedGraph::at_targets(Var of_nodes) const { return op::gather_rows(of_nodes, target_); }
op::Var PackedGraph::arriving(Var of_edges) const { return op::segment_sum(of_edges, target_, nodes_); }

op::Var PackedGraph::own_number() const {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(nodes_));
  std::iota(numbers.begin(), numbers.end(), 0);
  op::Builder& b = batch_.builder();
  const Var all = b.constant(Tensor::from(Shape{1, nodes_}, numbers)),
            none = b.constant(Tensor::scalar<std::int64_t>(-1)),
            zero = b.constant(Tensor::scalar<std::int64_t>(0));
  return op::where(op::greater_or_equal(batch_, zero), all, none);
}

op::Var PackedGraph::end_of(Var edge_index, std::int64_t which) const {
  return op::reshape(op::slice(edge_index, {which}, {which + 1}, {1}), {packs_, edges_});
}

}  // namespace superstep::workload
