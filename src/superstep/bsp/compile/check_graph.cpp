#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/bsp/compile/check.h"
#include "superstep/bsp/graph/rule_error.h"

namespace superstep::bsp {
namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& where, const std::string& hint) {
  throw Error(ErrorCode::bad_graph, message, where, hint);
}
[[noreturn]] void refuse(Rule rule, const std::string& message, const std::string& where,
                         const std::string& hint) {
  throw RuleError(rule, ErrorCode::bad_graph, message, where, hint);
}

template <class Where>
void require_mapped(const GraphData& graph, const Tensor& tensor, MappingCheck& mapping, Where&& where) {
  for (const Region& region : tensor.view().regions()) {
    const std::int64_t unmapped = mapping.first_unmapped(region.variable);
    if (unmapped < 0) continue;
    const Variable& variable = graph.variable(region.variable);
    refuse(Rule::mapped,
           fmt::format("element {} of variable '{}' {} is on no tile", unmapped, variable.name,
                       to_string(variable.shape)),
           where(), "call set_tile_mapping for all of it");
  }
}

void check_field(const GraphData& graph, VertexId id, std::size_t index, MappingCheck& mapping) {
  const VertexData& vertex = graph.vertices[id.index()];
  const FieldInfo& info = vertex.vertex_class->fields[index];
  const FieldConnection& field = vertex.fields[index];
  if (info.shape == FieldShape::state) return;  // zero when no value was given
  const auto where = [&] { return graph.describe(id); };
  if (!field.connected)
    refuse(Rule::connected, fmt::format("field '{}' is not connected", info.name), where(),
           "connect every field of a vertex");
  for (std::size_t i = 0; i < field.tensors.size(); ++i) {
    if (!field.tensors[i].valid())
      refuse(Rule::connected, fmt::format("vector {} of field '{}' is not connected", i, info.name), where(),
             "connect every vector");
    require_mapped(graph, field.tensors[i], mapping, [&] { return where() + ", field '" + info.name + "'"; });
  }
}

struct Conflict {
  const GraphData& graph;
  const ComputeSetData& set;

  std::string who(const Access& access) const {
    const VertexId id = set.vertices[access.vertex];
    const VertexData& vertex = graph.vertices[id.index()];
    return fmt::format("vertex {} ({}, tile {}) field '{}'", id.index(), vertex.vertex_class->name,
                       vertex.tile.value_or(0), vertex.vertex_class->fields[access.field].name);
  }

  [[noreturn]] void report(const Access& a, const Access& b, const char* verb) const {
    const Variable& variable = graph.variable(a.variable);
    const std::int64_t element = std::max(a.begin, b.begin);
    const bool same = a.vertex == b.vertex;
    refuse(Rule::no_race,
           fmt::format("element {} of '{}': {} writes it and {} {} it", element, variable.name, who(a),
                       who(b), verb),
           fmt::format("compute set '{}'", set.name),
           same ? "use one InOut field"
                : "put them into two compute sets, or let them work on different elements");
  }
};

}  // namespace

std::int64_t MappingCheck::first_unmapped(VariableId id) {
  std::int64_t& unmapped = unmapped_[id.index()];
  const Variable& variable = graph_.variable(id);
  if (unmapped == unknown) unmapped = variable.mapping.first_unmapped(variable.count());
  return unmapped;
}

void check_compute_set(const GraphData& graph, ComputeSetId id, MappingCheck& mapping) {
  const ComputeSetData& set = graph.compute_sets[id.index()];
  for (const VertexId vertex_id : set.vertices) {
    const VertexData& vertex = graph.vertices[vertex_id.index()];
    if (!vertex.tile)
      refuse(Rule::mapped, "the vertex is on no tile", graph.describe(vertex_id), "call set_tile_mapping");
    for (std::size_t i = 0; i < vertex.fields.size(); ++i) check_field(graph, vertex_id, i, mapping);
  }
}

void check_races(const GraphData& graph, ComputeSetId id, const VertexAccesses& accesses,
                 bool allow_vertex_aliases) {
  const Conflict conflict{graph, graph.compute_sets[id.index()]};
  std::vector<Access> writes = accesses.writes;
  std::sort(writes.begin(), writes.end());
  for (std::size_t i = 0; i + 1 < writes.size(); ++i) {  // sorted by begin: a clash shows between neighbours
    const Access &a = writes[i], &b = writes[i + 1];
    if (a.variable == b.variable && b.begin < a.end) conflict.report(a, b, "writes");
  }
  for (const Access& read : accesses.reads) {
    auto write = std::partition_point(writes.begin(), writes.end(), [&](const Access& w) {
      return w.variable != read.variable ? w.variable < read.variable : w.end <= read.begin;
    });
    for (; write != writes.end() && write->variable == read.variable && write->begin < read.end; ++write)
      if (write->vertex != read.vertex || (!allow_vertex_aliases && write->field != read.field))
        conflict.report(*write, read, "reads");
  }
}

std::string describe(const ProgramNode& node) {
  return node.name.empty() ? fmt::format("program {}", name_of(node.kind))
                           : fmt::format("program {} '{}'", name_of(node.kind), node.name);
}

namespace {

void require_writeable(const Tensor& tensor, const std::string& where) {
  if (!tensor.is_parallel_writeable())
    refuse(Rule::writeable,
           fmt::format("{}{} cannot be written: it has constants, or an element at two places", tensor.name(),
                       tensor.shape_to_string()),
           where, "write to a variable without aliases");
}

void check_stream(const GraphData& graph, const ProgramNode& node) {
  const StreamData& stream = graph.streams[node.stream.index()];
  const Tensor& tensor = node.tensors[0];
  if (stream.to_device != (node.kind == ProgramKind::stream_in))
    refuse(Rule::transfer, fmt::format("stream '{}' goes the other way", stream.handle), describe(node),
           "use a stream of this way");
  if (stream.type != tensor.element_type() || stream.elements != tensor.num_elements())
    refuse(Rule::transfer,
           fmt::format("stream '{}' moves {} {}, tensor {}{} is {}", stream.handle, stream.elements,
                       device_name(stream.type), tensor.name(), tensor.shape_to_string(),
                       device_name(tensor.element_type())),
           describe(node), "make the stream of the tensor's type and size");
}

void check_remote(const GraphData& graph, const ProgramNode& node) {
  const RemoteBufferData& buffer = graph.buffers[node.buffer.index()];
  const Tensor& tensor = node.tensors[0];
  const std::int64_t rows = node.tensors.size() > 1 ? node.tensors[1].num_elements() : 1;
  if (buffer.type != tensor.element_type() || buffer.elements * rows != tensor.num_elements())
    refuse(Rule::transfer,
           fmt::format("{} rows of remote buffer '{}' are {} {}, tensor {}{} is {}", rows, buffer.handle,
                       buffer.elements * rows, device_name(buffer.type), tensor.name(),
                       tensor.shape_to_string(), device_name(tensor.element_type())),
           describe(node), "rows times elements must be the tensor's size");
  if (node.tensors.size() > 1 && !is_integer(node.tensors[1].element_type()))
    refuse("the offset must be of an integer type", describe(node), "take unsigned int");
}

}  // namespace

void check_leaf(const GraphData& graph, const ProgramNode& node, MappingCheck& mapping) {
  for (const Tensor& tensor : node.tensors) {
    if (tensor.graph() != &graph)
      refuse("a tensor of another graph", describe(node), "use this graph's tensors");
    require_mapped(graph, tensor, mapping, [&] { return describe(node); });
  }
  switch (node.kind) {
    case ProgramKind::copy: require_writeable(node.tensors[1], describe(node)); break;
    case ProgramKind::execute:
      for (const Tensor& status : node.tensors) require_writeable(status, describe(node));
      break;
    case ProgramKind::count_cycles: require_writeable(node.tensors[0], describe(node)); break;
    case ProgramKind::cross_replica_copy:
      require_writeable(node.tensors[1], describe(node));
      if (node.replica_map.size() != graph.replicas)
        refuse(fmt::format("the map has {} entries, the graph {} replicas", node.replica_map.size(),
                           graph.replicas),
               describe(node), "give the source of every replica");
      for (const std::uint32_t from : node.replica_map)
        if (from >= graph.replicas)
          refuse(fmt::format("there is no replica {}", from), describe(node), "count from 0");
      break;
    case ProgramKind::stream_in:
    case ProgramKind::stream_out:
      check_stream(graph, node);
      if (node.kind == ProgramKind::stream_in) require_writeable(node.tensors[0], describe(node));
      break;
    case ProgramKind::remote_read:
    case ProgramKind::remote_write:
      check_remote(graph, node);
      if (node.kind == ProgramKind::remote_read) require_writeable(node.tensors[0], describe(node));
      break;
    default: break;
  }
}

}  // namespace superstep::bsp
