// What the indices of a pack of graphs (workload/graph_packs.h) say, as values of a model under construction:
// edge_index i64 [packs, 2, edges] (from, to) and batch i64 [packs, nodes], the number of each node's graph;
// -1 is padding.
#pragma once

#include "superstep/op/core/builder.h"

namespace superstep::workload {

class PackedGraph {
 public:
  using Var = op::Var;
  PackedGraph(op::Builder& builder, Var edge_index, Var batch);

  Var source() const { return source_; }  // [packs, edges]
  Var target() const { return target_; }
  Var batch() const { return batch_; }
  std::int64_t packs() const { return packs_; }
  std::int64_t nodes() const { return nodes_; }
  std::int64_t edges() const { return edges_; }

  // [packs, nodes or edges, width] as the rows of a product, and back.
  static Var as_rows(Var values);
  Var as_nodes(Var rows) const;
  Var as_edges(Var rows) const;

  // 1 where an index names something: [packs, count, 1].
  static Var is_there(Var index);
  Var is_node() const { return is_there(batch_); }

  // What stands at the ends of edges, of values of nodes [packs, nodes, width]; and what arrives at nodes, of
  // values of edges.
  Var at_sources(Var of_nodes) const;
  Var at_targets(Var of_nodes) const;
  Var arriving(Var of_edges) const;

  // The number of each node in its pack, -1 for padding: the ends of edges from nodes to themselves.
  Var own_number() const;

 private:
  Var end_of(Var edge_index, std::int64_t which) const;

  Var batch_, source_, target_;
  std::int64_t packs_, nodes_, edges_;
};

}  // namespace superstep::workload
