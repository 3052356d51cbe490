// Tensors with the variables that they are of, saved and put into a graph again.
#include <istream>
#include <iterator>
#include <ostream>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/types.h"
#include "superstep/poplar/executable/machine_parts.h"

namespace poplar {
namespace core {
namespace {

constexpr std::string_view first_line = "superstep-poplar-tensors 1\n";  // the number is the version

struct SavedVariable {
  std::string name;
  Type::Id type = Type::NO_TYPE_ID;
  superstep::Shape shape;
  bool constant = false;
  std::optional<bsp::InitialValue> initial;
  std::vector<std::pair<bsp::Interval, std::uint32_t>> tiles;
};

// Its elements in order: intervals of variables, by their numbers in the file.
struct SavedTensor {
  Type::Id type = Type::NO_TYPE_ID;
  superstep::Shape shape;
  std::vector<std::pair<std::uint32_t, bsp::Interval>> regions;
};

template <class A>
void archived(A& archive, SavedVariable& x) {
  archived_all(archive, x.name, x.type, x.shape, x.constant, x.initial, x.tiles);
}

template <class A>
void archived(A& archive, SavedTensor& x) {
  archived_all(archive, x.type, x.shape, x.regions);
}

SavedVariable saved(const GraphState& state, bsp::VariableId id) {
  const bsp::Variable& variable = state.graph.data().variable(id);
  SavedVariable result{variable.name,    state.types.at(id.index()).id(),
                       variable.shape,   variable.constant,
                       variable.initial, {}};
  for (const bsp::MappedInterval& part : variable.mapping.intervals())
    result.tiles.push_back({{part.begin, part.end}, part.tile});
  return result;
}

void need(bool there, const char* what) {
  if (!there) throw graph_object_load_error(std::string("the saved tensors are damaged: ") + what);
}

// The variable in this graph.
bsp::Tensor put(GraphState& state, const SavedVariable& saved) {
  const bsp::Type type = machine_type(Type(saved.type));
  const std::size_t number = state.graph.data().variables.size();
  bsp::Tensor tensor;
  if (saved.constant) {
    need(saved.initial.has_value(), "a constant without a value");
    const auto& values = saved.initial->values;
    if (values) need(values->type() == type && values->shape() == saved.shape, "a constant's values");
    tensor = values ? state.graph.add_constant(*values, saved.name)
                    : state.graph.add_constant(type, saved.shape, saved.initial->splat, saved.name);
  } else {
    tensor = state.graph.add_variable(type, saved.shape, saved.name);
    if (saved.initial && saved.initial->values) {
      need(saved.initial->values->type() == type && saved.initial->values->shape() == saved.shape,
           "initial values");
      state.graph.set_initial_value(tensor, *saved.initial->values);
    } else if (saved.initial) {
      state.graph.set_initial_value(tensor, saved.initial->splat);
    }
  }
  const bsp::Tensor flat = tensor.flatten();
  for (const auto& [interval, tile] : saved.tiles) state.graph.set_tile_mapping(flat.slice(interval), tile);
  state.types[number] = Type(saved.type);
  return tensor;
}

bsp::Tensor joined(const SavedTensor& saved, const std::vector<bsp::Tensor>& variables) {
  std::vector<bsp::Tensor> parts;
  for (const auto& [number, interval] : saved.regions) {
    need(number < variables.size(), "a tensor of no variable");
    parts.push_back(variables[number].flatten().slice(interval).reinterpret(machine_type(Type(saved.type))));
  }
  need(!parts.empty(), "a tensor without elements");
  return bsp::concat(parts).reshape(saved.shape);
}

}  // namespace
}  // namespace core

void Graph::serializeTensors(std::ostream& out, ArrayRef<Tensor> tensors, SerializationFormat format) const {
  if (format != SerializationFormat::Binary)
    throw poplar_error("serializeTensors: only SerializationFormat::Binary is there");
  std::map<core::bsp::VariableId, std::uint32_t> numbers;
  std::vector<core::SavedVariable> variables;
  std::vector<core::SavedTensor> saved;
  for (const Tensor& tensor : tensors) {
    const core::bsp::Tensor& machine = core::single_tensor(tensor);
    if (machine.num_elements() == 0)
      throw poplar_error("serializeTensors: tensor " + core::describe(tensor) + " has no elements");
    core::SavedTensor& one = saved.emplace_back();
    one.type = tensor.elementType().id();
    one.shape = machine.shape();
    for (const core::bsp::VariableInterval& region : machine.variable_regions()) {
      const auto [place, is_new] =
          numbers.emplace(region.variable, static_cast<std::uint32_t>(variables.size()));
      if (is_new) variables.push_back(core::saved(*handle().state, region.variable));
      one.regions.emplace_back(place->second, region.interval);
    }
  }
  core::ArchiveWriter archive;
  core::archived_all(archive, variables, saved);
  out << core::first_line << archive.bytes;
  if (!out.flush()) throw poplar_error("the tensors cannot be written: the stream has failed");
}

std::vector<Tensor> Graph::deserializeTensors(std::istream& in, SerializationFormat format) {
  if (format != SerializationFormat::Binary)
    throw poplar_error("deserializeTensors: only SerializationFormat::Binary is there");
  if (handle().replicas)
    throw graph_replication_error("deserializeTensors: a replicated graph: take the graph around it");
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (!bytes.starts_with(core::first_line))
    throw graph_object_load_error("these are no saved tensors: write them by Graph::serializeTensors");
  core::ArchiveReader archive(std::string_view(bytes).substr(core::first_line.size()));
  std::vector<core::SavedVariable> saved;
  std::vector<core::SavedTensor> tensors;
  return core::guarded([&] {
    core::archived_all(archive, saved, tensors);
    core::need(archive.at_end(), "there is more than they say");
    std::vector<core::bsp::Tensor> variables;
    for (const core::SavedVariable& variable : saved)
      variables.push_back(core::put(*handle().state, variable));
    std::vector<Tensor> result;
    for (const core::SavedTensor& tensor : tensors)
      result.push_back(Tensor(std::make_shared<const core::TensorData>(
          core::TensorData{handle().state, core::joined(tensor, variables), Type(tensor.type)})));
    return result;
  });
}

}  // namespace poplar
