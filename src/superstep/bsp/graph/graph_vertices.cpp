// Compute sets and vertices of a graph.
#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/bsp/graph/graph.h"
#include "superstep/bsp/graph/graph_data.h"

namespace superstep::bsp {
namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& where, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, where, hint);
}

std::string field_list(const VertexClass& vertex_class) {
  std::vector<std::string> names;
  for (const FieldInfo& field : vertex_class.fields) names.push_back(field.name);
  return "its fields are " + join(names, ", ");
}

struct FoundField {
  const GraphData& data;
  const FieldRef& reference;
  const FieldInfo* info;
  FieldConnection* connection;

  std::string where() const {
    return fmt::format("{}, field '{}'", data.describe(reference.vertex.id), reference.name);
  }
};

FoundField find_field(GraphData& data, const FieldRef& field) {
  VertexData& vertex = data.vertices[field.vertex.id.index()];
  const int index = vertex.vertex_class->field_index(field.name);
  if (index < 0)
    refuse(fmt::format("there is no field '{}'", field.name), data.describe(field.vertex.id),
           field_list(*vertex.vertex_class));
  return {data, field, &vertex.vertex_class->fields[static_cast<std::size_t>(index)],
          &vertex.fields[static_cast<std::size_t>(index)]};
}

void check_tensor(const GraphData& data, const FoundField& field, const Tensor& tensor) {
  if (!tensor.valid() || tensor.graph() != &data) refuse("a tensor of another graph, or none", field.where());
  if (tensor.element_type() != field.info->type)
    refuse(fmt::format("{}{} is {}, the field {}", tensor.name(), tensor.shape_to_string(),
                       device_name(tensor.element_type()), device_name(field.info->type)),
           field.where(), "connect a tensor of the field's type");
  if (field.info->shape == FieldShape::scalar && tensor.num_elements() != 1)
    refuse(fmt::format("{}{} has {} elements, the field takes one", tensor.name(), tensor.shape_to_string(),
                       tensor.num_elements()),
           field.where());
  if (field.info->direction != FieldDirection::input && !tensor.is_parallel_writeable())
    refuse(fmt::format("{}{} cannot be written: it has constants, or an element at two places", tensor.name(),
                       tensor.shape_to_string()),
           field.where());
}

}  // namespace

std::string GraphData::describe(VertexId id) const {
  const VertexData& vertex = vertices[id.index()];
  std::string text =
      fmt::format("compute set '{}', vertex {} ({})", compute_sets[vertex.compute_set.index()].name,
                  id.index(), vertex.vertex_class->name);
  if (vertex.tile) text += fmt::format(" on tile {}", *vertex.tile);
  return text;
}

void Graph::add_codelets(std::span<const VertexClass> classes) {
  for (const VertexClass& vertex_class : classes) {
    check_vertex_class(vertex_class);
    const auto [place, added] = data_->classes.emplace(vertex_class.name, vertex_class);
    if (!added && place->second.compute != vertex_class.compute)
      refuse("another vertex class has this name", "vertex class " + vertex_class.name);
  }
}

void Graph::add_codelets(std::initializer_list<VertexClass> classes) {
  add_codelets(std::span<const VertexClass>(classes.begin(), classes.size()));
}

bool Graph::has_codelet(std::string_view name) const { return data_->classes.contains(name); }

ComputeSet Graph::add_compute_set(std::string name) {
  const ComputeSetId id(data_->compute_sets.size());
  data_->compute_sets.push_back({name.empty() ? fmt::format("cs{}", id.index()) : std::move(name), {}});
  return {id};
}

VertexRef Graph::add_vertex(ComputeSet set, std::string_view class_name) {
  const auto found = data_->classes.find(class_name);
  if (found == data_->classes.end()) {
    std::vector<std::string> names;
    for (const auto& [name, vertex_class] : data_->classes) names.push_back(name);
    refuse("there is no such vertex class", std::string(class_name), unknown_name_hint(class_name, names));
  }
  const VertexId id(data_->vertices.size());
  VertexData& vertex = data_->vertices.emplace_back();
  vertex.vertex_class = &found->second;
  vertex.compute_set = set.id;
  for (const FieldInfo& field : found->second.fields) vertex.fields.emplace_back().value = field.initial;
  data_->compute_sets[set.id.index()].vertices.push_back(id);
  return {id};
}

VertexRef Graph::add_vertex(ComputeSet set, std::string_view class_name,
                            std::initializer_list<Connection> connections) {
  return add_vertex(set, class_name, std::span<const Connection>(connections.begin(), connections.size()));
}

VertexRef Graph::add_vertex(ComputeSet set, std::string_view class_name,
                            std::span<const Connection> connections) {
  const VertexRef vertex = add_vertex(set, class_name);
  for (const Connection& connection : connections) {
    const FieldRef reference{vertex, connection.field};
    const FieldShape shape = find_field(*data_, reference).info->shape;
    const bool matrix = connection.tensors.size() == 1 && connection.tensors[0].rank() == 2;
    if ((shape == FieldShape::vector_list && !matrix) || connection.tensors.size() != 1)
      connect(reference, std::span<const Tensor>(connection.tensors));
    else
      connect(reference, connection.tensors[0]);
  }
  return vertex;
}

void Graph::connect(const FieldRef& field, const Tensor& tensor) {
  const FoundField found = find_field(*data_, field);
  if (found.info->shape == FieldShape::state)
    refuse("this is state: it has an initial value, not a tensor", found.where(), "call set_initial_value");
  check_tensor(*data_, found, tensor);
  if (found.info->shape == FieldShape::vector_list) {
    if (field.index < 0) {  // rows of a matrix
      if (tensor.rank() != 2) refuse("a list of vectors takes a matrix, or a list of tensors", found.where());
      found.connection->tensors.clear();
      for (std::int64_t i = 0; i < tensor.dim(0); ++i) found.connection->tensors.push_back(tensor[i]);
    } else {
      if (static_cast<std::size_t>(field.index) >= found.connection->tensors.size())
        refuse(fmt::format("vector {} of {}", field.index, found.connection->tensors.size()), found.where(),
               "call set_field_size first");
      found.connection->tensors[static_cast<std::size_t>(field.index)] = tensor.flatten();
    }
  } else {
    if (field.index >= 0) refuse("this field is not a list of vectors", found.where());
    found.connection->tensors.assign(1, tensor.flatten());
  }
  found.connection->connected = true;
}

void Graph::connect(const FieldRef& field, std::span<const Tensor> tensors) {
  const FoundField found = find_field(*data_, field);
  if (found.info->shape == FieldShape::vector && field.index < 0) {  // joined end to end
    if (tensors.empty()) refuse("no tensors", found.where());
    std::vector<Tensor> flat;
    for (const Tensor& tensor : tensors) flat.push_back(tensor.flatten());
    return connect(field, concat(flat));
  }
  if (found.info->shape != FieldShape::vector_list || field.index >= 0)
    refuse("only a list of vectors takes several tensors", found.where());
  found.connection->tensors.clear();
  for (const Tensor& tensor : tensors) {
    check_tensor(*data_, found, tensor);
    found.connection->tensors.push_back(tensor.flatten());
  }
  found.connection->connected = true;
}

void Graph::set_field_size(const FieldRef& field, std::size_t size) {
  const FoundField found = find_field(*data_, field);
  if (found.info->shape != FieldShape::vector_list)
    refuse("only a list of vectors has a size to set", found.where());
  found.connection->tensors.resize(size);
}

void Graph::set_initial_value(const FieldRef& field, double value) {
  const FoundField found = find_field(*data_, field);
  if (found.info->shape != FieldShape::state)
    refuse("only state has an initial value", found.where(), "connect a constant instead");
  found.connection->value = value;
  found.connection->connected = true;
}

void Graph::set_tile_mapping(VertexRef vertex, std::uint32_t tile) {
  data_->vertices[vertex.id.index()].tile = checked_tile(tile, [&] { return data_->describe(vertex.id); });
}

void Graph::set_perf_estimate(VertexRef vertex, std::uint64_t cycles, std::uint64_t flops) {
  data_->vertices[vertex.id.index()].estimate = PerfEstimate(cycles, flops);
}

void Graph::set_perf_estimate(std::string_view class_name, PerfEstimateFunction cycles) {
  const auto found = data_->classes.find(class_name);
  if (found == data_->classes.end()) refuse("there is no such vertex class", std::string(class_name));
  found->second.cycles = std::move(cycles);
}

void Graph::set_vertex_estimate(std::string_view class_name,
                                std::function<PerfEstimate(const VertexData&)> cycles) {
  const auto found = data_->classes.find(class_name);
  if (found == data_->classes.end()) refuse("there is no such vertex class", std::string(class_name));
  found->second.vertex_cycles = std::move(cycles);
}

}  // namespace superstep::bsp
