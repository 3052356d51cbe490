#include "superstep/bsp/compile/access.h"

#include <fmt/format.h>

#include "superstep/base/error.h"

namespace superstep::bsp {

VertexAccesses accesses_of(const GraphData& graph, const ComputeSetData& set, std::size_t most) {
  VertexAccesses result;
  const auto too_many = [&] {
    throw Error(ErrorCode::unsupported,
                fmt::format("its vertices touch more than {} separate runs of elements", most),
                fmt::format("compute set '{}'", set.name), "take fewer samples at a time");
  };
  for (std::size_t i = 0; i < set.vertices.size(); ++i) {
    const VertexData& vertex = graph.vertices[set.vertices[i].index()];
    for (std::size_t f = 0; f < vertex.fields.size(); ++f) {
      const FieldDirection direction = vertex.vertex_class->fields[f].direction;
      for (const Tensor& tensor : vertex.fields[f].tensors) {
        tensor.view().for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
          const Access access{variable, begin, end, static_cast<std::uint32_t>(i),
                              static_cast<std::uint16_t>(f)};
          if (result.reads.size() + result.writes.size() >= most) too_many();
          if (direction != FieldDirection::output) result.reads.push_back(access);
          if (direction != FieldDirection::input) result.writes.push_back(access);
        });
      }
    }
  }
  return result;
}

ElementSets element_sets(const std::vector<Access>& accesses) {
  std::map<VariableId, std::vector<Interval>> lists;
  for (const Access& access : accesses) lists[access.variable].push_back({access.begin, access.end});
  ElementSets sets;
  for (auto& [variable, list] : lists) sets[variable] = IntervalSet(std::move(list));
  return sets;
}

ElementSets element_sets(const Tensor& tensor) {
  std::map<VariableId, std::vector<Interval>> lists;
  tensor.view().for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
    lists[variable].push_back({begin, end});
  });
  ElementSets sets;
  for (auto& [variable, list] : lists) sets[variable] = IntervalSet(std::move(list));
  return sets;
}

void add(ElementSets& sets, const ElementSets& more) {
  for (const auto& [variable, set] : more) sets[variable].add(set);
}

AccessTable::Entry& AccessTable::entry(ComputeSetId id) {
  Entry& entry = sets_[id.index()];
  if (entry.known) return entry;
  entry.known = true;
  entry.vertices = accesses_of(graph_, graph_.compute_sets[id.index()], most_);
  entry.reads = element_sets(entry.vertices.reads);
  entry.writes = element_sets(entry.vertices.writes);
  return entry;
}

const VertexAccesses& AccessTable::vertices(ComputeSetId id) { return entry(id).vertices; }

void AccessTable::forget_vertices(ComputeSetId id) { entry(id).vertices = {}; }

LeafAccess AccessTable::leaf(const ProgramNode& node) {
  LeafAccess access;
  switch (node.kind) {
    case ProgramKind::execute: {
      const Entry& set = entry(node.compute_set);
      access = {set.reads, set.writes, {}};
      for (const Tensor& status : node.tensors) add(access.writes, element_sets(status));
      return access;
    }
    case ProgramKind::copy:
    case ProgramKind::cross_replica_copy:
      access.reads = element_sets(node.tensors[0]);
      access.writes = element_sets(node.tensors[1]);
      break;
    case ProgramKind::stream_in: access.writes = element_sets(node.tensors[0]); break;
    case ProgramKind::remote_read:
      access.writes = element_sets(node.tensors[0]);
      if (node.tensors.size() > 1) access.reads = element_sets(node.tensors[1]);
      break;
    case ProgramKind::count_cycles:
      access.writes = element_sets(node.tensors[0]);
      if (!node.wanted) access.reads = access.writes;
      break;
    case ProgramKind::write_undef: access.undefined = element_sets(node.tensors[0]); break;
    default:  // everything else reads its tensors: streams out, predicates, prints
      for (const Tensor& tensor : node.tensors) add(access.reads, element_sets(tensor));
  }
  return access;
}

}  // namespace superstep::bsp
