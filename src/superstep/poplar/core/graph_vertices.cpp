// Vertices and what their fields are connected to.
#include <poplar/Graph.hpp>

#include "superstep/base/text.h"
#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/codelet/load_codelets.h"
#include "superstep/poplar/core/convert.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/types.h"
#include "superstep/poplar/replicas/replicas.h"

namespace poplar {
namespace {

using core::guarded;
using core::single_tensor;
namespace table = vertex_table;

// A field of a vertex with everything that calls want to know of it.
struct Field {
  const core::GraphHandle& graph;
  const FieldRef& reference;
  const table::Field* info;

  std::uint32_t vertex() const { return reference.getVertex().getId(); }
  core::bsp::VertexRef machine_vertex() const { return {core::bsp::VertexId(vertex())}; }
  core::bsp::FieldRef machine() const {
    core::bsp::FieldRef field{machine_vertex(), reference.getName()};
    if (reference.isIndexed()) field.index = static_cast<int>(reference.getIndex());
    return field;
  }
  std::string where() const {
    return graph.state->graph.data().describe(core::bsp::VertexId(vertex())) + ", field '" +
           reference.getName() + "'";
  }
  const core::bsp::FieldConnection& connection() const {
    const core::bsp::VertexData& data = graph.state->graph.data().vertices[vertex()];
    return data.fields[static_cast<std::size_t>(data.vertex_class->field_index(reference.getName()))];
  }
};

const core::CodeletClass& class_of(const core::GraphHandle& graph, VertexRef vertex) {
  const auto& vertices = graph.state->graph.data().vertices;
  if (vertex.getId() >= vertices.size())
    throw poplar_error("a vertex that is not there: take Graph::addVertex");
  core::check_is_of(graph, vertex);
  return *static_cast<const core::CodeletClass*>(vertices[vertex.getId()].vertex_class->context.get());
}

Field find_field(const core::GraphHandle& graph, const FieldRef& reference) {
  const core::CodeletClass& owner = class_of(graph, reference.getVertex());
  if (const table::Field* info = owner.find(reference.getName())) return {graph, reference, info};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < owner.entry->field_count; ++i) names.emplace_back(owner.entry->fields[i].name);
  throw unknown_field(fmt::format("vertex {} has no field '{}': {}", owner.entry->name, reference.getName(),
                                  superstep::unknown_name_hint(reference.getName(), names)));
}

bool is_list(const Field& field) {
  return field.info->shape == table::VECTOR_LIST || field.info->shape == table::SCALAR_LIST ||
         field.info->shape == table::STATE_VECTOR_LIST;
}

// Of the vertex's own vectors: the one that the reference is, with its place in a list.
std::string own_name(const FieldRef& reference, bool of_list) {
  return of_list ? fmt::format("{}[{}]", reference.getName(), reference.getIndex()) : reference.getName();
}

bool is_own(const Field& field) {
  return field.info->shape == table::STATE || field.info->shape == table::STATE_VECTOR ||
         field.info->shape == table::STATE_VECTOR_LIST;
}

void check_type(const Field& field, const Tensor& tensor) {
  if (tensor.elementType() != Type(field.info->type))
    throw type_error(fmt::format("{}: {} is {}, the field {}", field.where(), core::describe(tensor),
                                 tensor.elementType().toString(), Type(field.info->type).toString()));
}

// A list is as long as its last vector that was named, or as setFieldSize says.
void make_room(const Field& field) {
  if (is_list(field) && field.reference.isIndexed() &&
      field.reference.getIndex() >= field.connection().tensors.size())
    field.graph.state->graph.set_field_size({field.machine_vertex(), field.reference.getName()},
                                            field.reference.getIndex() + 1);
}

// The machine's refusals of a connection.
template <class F>
void connecting(const Field& field, F&& connect) {
  if (is_own(field))
    throw graph_connection_error(field.where() +
                                 ": it is the vertex's own, without edges: call setInitialValue");
  if (!field.reference.isIndexed() && field.connection().connected)
    throw graph_connection_error(field.where() + ": it has its edges already");
  try {
    make_room(field);
    connect();
  } catch (const superstep::Error& error) {
    throw graph_connection_error(error.what());
  }
}

std::vector<core::bsp::Tensor> elements_of(const core::bsp::Tensor& tensor) {
  const core::bsp::Tensor flat = tensor.flatten();
  std::vector<core::bsp::Tensor> elements;
  for (std::int64_t i = 0; i < flat.num_elements(); ++i) elements.push_back(flat[i]);
  return elements;
}

// Numbers that are the vertex's own lie on its tile, in a variable that nothing else refers to.
core::bsp::Tensor own_variable(const Field& field, const superstep::Tensor& values, bool constant) {
  core::bsp::Graph& graph = field.graph.state->graph;
  const std::string name = fmt::format(
      "{}.{}", class_of(field.graph, field.reference.getVertex()).entry->name, field.reference.getName());
  core::bsp::Tensor tensor =
      constant ? graph.add_constant(values, name) : graph.add_variable(values.type(), values.shape(), name);
  if (!constant) graph.set_initial_value(tensor, values);
  field.graph.state->owned[{field.vertex(), own_name(field.reference, is_list(field))}] = {field.vertex(),
                                                                                           tensor};
  return tensor;
}

const char* shape_name(table::Shape shape) {
  switch (shape) {
    case table::STATE: return "one number";
    case table::STATE_VECTOR: return "a vector of numbers";
    case table::STATE_VECTOR_LIST: return "a list of vectors of numbers";
    case table::SCALAR: return "one element";
    case table::VECTOR: return "a vector";
    default: return "a list of vectors";
  }
}

void set_element(const Field& field, const superstep::Tensor& value) {
  const auto own = field.graph.state->owned.find({field.vertex(), field.reference.getName()});
  if (own == field.graph.state->owned.end())
    throw no_size_specified(field.where() + ": call setFieldSize before its elements are set");
  const auto i = static_cast<std::int64_t>(field.reference.getIndex());
  field.graph.state->graph.set_initial_value(own->second.tensor.slice(i, i + 1), value);
}

}  // namespace

ComputeSet Graph::addComputeSet(const DebugContext& context) {
  return ComputeSet(
      static_cast<std::uint32_t>(handle().graph.add_compute_set(context.getPathName()).id.index()));
}

unsigned Graph::getNumVertices() const {
  return static_cast<unsigned>(handle().state->graph.data().vertices.size());
}

VertexRef Graph::addVertex(ComputeSet set, StringRef type) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t) { return graph.addVertex(set, type); });
  if (set.getId() >= handle().state->graph.data().compute_sets.size())
    throw poplar_error("a vertex in a compute set that is not there: take Graph::addComputeSet");
  const std::string name = core::normal_name(type.cloneAsString());
  if (!handle().state->classes.contains(name)) {
    std::vector<std::string> names;
    for (const auto& [known, codelet] : handle().state->classes) names.push_back(known);
    throw unknown_vertex_type(fmt::format(
        "there is no vertex '{}': {}", type.cloneAsString(),
        names.empty() ? std::string("call addCodelets first") : superstep::unknown_name_hint(name, names)));
  }
  const core::bsp::VertexRef vertex =
      handle().graph.add_vertex({core::bsp::ComputeSetId(set.getId())}, std::string_view(name));
  return VertexRef(static_cast<std::uint32_t>(vertex.id.index()));
}

VertexRef Graph::addVertex(ComputeSet set, StringRef type, ArrayRef<ConnectionDesc> connections) {
  const VertexRef vertex = addVertex(set, type);
  for (const ConnectionDesc& connection : connections) {
    const FieldRef field(vertex, connection.field);
    if (connection.isValue)
      connectValue(field, connection.value, connection.traits);
    else if (connection.isList)
      connect(field, ArrayRef<Tensor>(connection.tensors));
    else
      connect(field, connection.tensors[0]);
  }
  return vertex;
}

void Graph::connect(FieldRef reference, const Tensor& tensor) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.connect(replicas->part(reference, replica), replicas->part(tensor, replica));
    });
  const Field field = find_field(handle(), reference);
  connecting(field, [&] {
    check_type(field, tensor);
    if (field.info->shape == table::SCALAR_LIST && !reference.isIndexed())
      handle().graph.connect(field.machine(), elements_of(single_tensor(tensor)));
    else
      handle().graph.connect(field.machine(), single_tensor(tensor));
  });
}

void Graph::connect(FieldRef reference, ArrayRef<Tensor> tensors) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      std::vector<Tensor> parts;
      for (const Tensor& tensor : tensors) parts.push_back(replicas->part(tensor, replica));
      graph.connect(replicas->part(reference, replica), ArrayRef<Tensor>(parts));
    });
  const Field field = find_field(handle(), reference);
  connecting(field, [&] {
    std::vector<core::bsp::Tensor> parts;
    for (const Tensor& tensor : tensors) {
      check_type(field, tensor);
      parts.push_back(single_tensor(tensor));
    }
    handle().graph.connect(field.machine(), parts);
  });
}

void Graph::connectValue(FieldRef reference, const void* value, const TypeTraits& traits) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.connectValue(replicas->part(reference, replica), value, traits);
    });
  const Field field = find_field(handle(), reference);
  if (is_own(field)) return setFieldValues(reference, value, 1, traits, false);
  connecting(field, [&] {
    if (field.info->direction != table::INPUT)
      throw graph_connection_error(field.where() + ": a number is not written to: connect a tensor");
    const superstep::Tensor values =
        core::device_values(Type(field.info->type), superstep::Shape{1}, value, traits, false, field.where());
    handle().graph.connect(field.machine(), own_variable(field, values, true));
  });
}

void Graph::setFieldSize(FieldRef reference, std::size_t size) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.setFieldSize(replicas->part(reference, replica), size);
    });
  const Field field = find_field(handle(), reference);
  guarded([&] {
    const bool one_of_a_list = field.info->shape == table::STATE_VECTOR_LIST && reference.isIndexed();
    if (field.info->shape == table::STATE_VECTOR || one_of_a_list) {
      make_room(field);
      const superstep::Tensor zeros(core::machine_type(Type(field.info->type)),
                                    {static_cast<std::int64_t>(size)});
      handle().graph.connect(field.machine(), own_variable(field, zeros, false));
    } else if (is_list(field)) {
      if (size < field.connection().tensors.size())
        throw graph_connection_error(fmt::format("{}: {} vectors, and it has {} already", field.where(), size,
                                                 field.connection().tensors.size()));
      handle().graph.set_field_size(field.machine(), size);
    } else {
      throw poplar_error(
          fmt::format("{}: {} has no size to set", field.where(), shape_name(field.info->shape)));
    }
  });
}

std::size_t Graph::getFieldSize(FieldRef reference) const {
  const Field field = find_field(handle(), reference);
  const core::bsp::FieldConnection& connection = field.connection();
  if (is_list(field) && !reference.isIndexed()) return connection.tensors.size();
  const std::size_t i = is_list(field) ? reference.getIndex() : 0;
  if (i >= connection.tensors.size() || !connection.tensors[i].valid())
    throw no_size_specified(field.where() + ": it has no size yet");
  return static_cast<std::size_t>(connection.tensors[i].num_elements());
}

void Graph::setFieldValues(FieldRef reference, const void* values, std::size_t count,
                           const TypeTraits& traits, bool is_list) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.setFieldValues(replicas->part(reference, replica), values, count, traits, is_list);
    });
  const Field field = find_field(handle(), reference);
  guarded([&] {
    if (!is_own(field))
      throw poplar_error(fmt::format("{}: {} of a tensor has no initial value: connect a tensor",
                                     field.where(), shape_name(field.info->shape)));
    const superstep::Tensor converted =
        core::device_values(Type(field.info->type), superstep::Shape{static_cast<std::int64_t>(count)},
                            values, traits, false, field.where());
    // A vector of a list is named by its index; an element of a vector too.
    const bool of_list = field.info->shape == table::STATE_VECTOR_LIST;
    const bool vector = field.info->shape == table::STATE_VECTOR || (of_list && reference.isIndexed());
    if (field.info->shape == table::STATE_VECTOR && reference.isIndexed() && !is_list)
      return set_element(field, converted);
    if (vector != is_list)
      throw poplar_error(fmt::format("{}: {} takes {}", field.where(), shape_name(field.info->shape),
                                     vector ? "a list" : "a number"));
    make_room(field);
    if (vector)
      handle().graph.connect(field.machine(), own_variable(field, converted, false));
    else
      handle().graph.set_initial_value(field.machine(), converted.at(0));
  });
}

void Graph::setInitialValueHalf(FieldRef field, std::uint16_t bits) {
  float value = 0;
  copyDeviceHalfToFloat(getTarget(), &bits, &value, 1);
  setInitialValue(field, value);
}
void Graph::setInitialValueHalf(FieldRef field, ArrayRef<std::uint16_t> bits) {
  std::vector<float> values(bits.size());
  copyDeviceHalfToFloat(getTarget(), bits.data(), values.data(), bits.size());
  setInitialValue(field, values);
}

void Graph::setTileMapping(VertexRef vertex, unsigned tile) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.setTileMapping(replicas->part(vertex, replica), tile);
    });
  class_of(handle(), vertex);
  try {
    handle().graph.set_tile_mapping(core::bsp::VertexRef{core::bsp::VertexId(vertex.getId())}, tile);
  } catch (const superstep::Error& error) {
    throw invalid_tile_mapping(error.what());
  }
}

}  // namespace poplar
