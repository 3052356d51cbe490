// What a step reads and writes, element by element as intervals: the ground of every check and of liveness.
#pragma once

#include <map>
#include <vector>

#include "superstep/bsp/graph/graph_data.h"

namespace superstep::bsp {

struct Access {
  VariableId variable;
  std::int64_t begin = 0, end = 0;
  std::uint32_t vertex = 0;  // position in the compute set
  std::uint16_t field = 0;
  friend auto operator<=>(const Access&, const Access&) = default;
};

// Reads and writes of the vertices of a compute set; an InOut field is in both. Throws Error (unsupported)
// when there are more than `most`.
struct VertexAccesses {
  std::vector<Access> reads, writes;
};
VertexAccesses accesses_of(const GraphData& graph, const ComputeSetData& set,
                           std::size_t most = static_cast<std::size_t>(-1));

using ElementSets = std::map<VariableId, IntervalSet>;
ElementSets element_sets(const std::vector<Access>& accesses);
ElementSets element_sets(const Tensor& tensor);
void add(ElementSets& sets, const ElementSets& more);

// What one leaf of a program reads, writes, and declares undefined.
struct LeafAccess {
  ElementSets reads, writes, undefined;
};

// The leaves' accesses, compute sets looked up once.
class AccessTable {
 public:
  explicit AccessTable(const GraphData& graph, std::size_t most = static_cast<std::size_t>(-1))
      : graph_(graph), sets_(graph.compute_sets.size()), most_(most) {}
  const VertexAccesses& vertices(ComputeSetId id);
  LeafAccess leaf(const ProgramNode& node);
  void forget_vertices(ComputeSetId id);  // keeps the sums

 private:
  struct Entry {
    bool known = false;
    VertexAccesses vertices;
    ElementSets reads, writes;
  };
  Entry& entry(ComputeSetId id);
  const GraphData& graph_;
  std::vector<Entry> sets_;
  std::size_t most_;  // accesses of one compute set
};

}  // namespace superstep::bsp
