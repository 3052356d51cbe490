// Replicas in a graph of the whole target: what is added to such a graph is added once for each of them.
#pragma once

#include <map>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/poplar/core/handles.h"

namespace poplar::core {

// What belongs together over the replicas of one createReplicatedGraph, by the number of the first one's: the
// numbers of all. A tensor of the replicated graph is a view of the first replica's variables that says so
// (TensorData::replication).
struct Replication {
  using Numbers = std::map<std::size_t, std::vector<std::size_t>>;

  std::vector<bsp::Graph> wholes;  // all tiles of each replica
  Numbers variables, vertices, streams, buffers;

  std::size_t factor() const { return wholes.size(); }
  // Throws control_program_error for what another graph has made.
  const std::vector<std::size_t>& streams_of(std::uint32_t id, const std::string& handle) const;
  const std::vector<std::size_t>& buffers_of(std::uint32_t id, const std::string& handle) const;
};

// One replica's part of a replicated tensor, as a tensor of the graph around it.
Tensor part_of(const Tensor& tensor, std::size_t replica);
// The parts of all replicas, along a new outermost dimension.
Tensor all_parts(const Tensor& tensor);
// The tensor itself, or the parts of all replicas that it stands for.
bsp::Tensor whole_tensor(const Tensor& tensor);
// "x" of the first replica, "x/replica1" of the second: names of streams and buffers.
std::string name_in_replica(const std::string& name, std::size_t replica);

// The graphs of a replicated graph, one a replica.
class Replicas {
 public:
  // Each on the tiles of one of these, all of one size, which are views of `around`.
  Replicas(const GraphHandle& around, std::shared_ptr<Replication> replication,
           std::vector<bsp::Graph> tiles);

  const std::shared_ptr<Replication>& replication() const { return replication_; }
  std::vector<Graph>& graphs() { return graphs_; }

  // f(graph, replica) of every replica: all do the same. What they add belongs together. The first's result.
  template <class F>
  auto each(F&& f) {
    using Result = decltype(f(graphs_[0], std::size_t{}));
    if constexpr (std::is_void_v<Result>) {
      each([&](Graph& graph, std::size_t replica) { return f(graph, replica), 0; });
    } else {
      const Counts first = counts();
      Result result = f(graphs_[0], std::size_t{0});
      const Counts added = counts() - first;
      note(first, first, added);
      for (std::size_t replica = 1; replica < graphs_.size(); ++replica) {
        const Counts before = counts();
        f(graphs_[replica], replica);
        note(first, before, added);
      }
      return result;
    }
  }
  // The same of something that makes a tensor.
  template <class F>
  Tensor tensor(F&& make) {
    return replicated(each(make));
  }
  Tensor replicated(const Tensor& first) const;  // the tensor whose part in the first replica this is

  // Throw graph_replication_error for what another graph has made.
  Tensor part(const Tensor& tensor, std::size_t replica) const;
  VertexRef part(VertexRef vertex, std::size_t replica) const;
  FieldRef part(const FieldRef& field, std::size_t replica) const;

 private:
  struct Counts {
    std::size_t variables, vertices, streams, buffers;
    Counts operator-(const Counts& other) const;
  };
  Counts counts() const;
  void note(const Counts& first, const Counts& begin, const Counts& added);

  std::shared_ptr<GraphState> state_;
  std::shared_ptr<Replication> replication_;
  std::vector<Graph> graphs_;
};

// Throws graph_replication_error for a vertex that stands for those of several replicas, where `graph` does
// not.
void check_is_of(const GraphHandle& graph, VertexRef vertex);
// The same graph, or each of its replicas, on the tiles that `make` chooses of one.
std::unique_ptr<GraphHandle> view_of(const GraphHandle& whole,
                                     superstep::FunctionRef<bsp::Graph(const bsp::Graph&)> make);

}  // namespace poplar::core
