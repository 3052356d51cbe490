// A graph as text: what it has, and where.
#include <nlohmann/json.hpp>
#include <poplar/Graph.hpp>
#include <poplar/SerializationFormat.hpp>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/handles.h"

namespace poplar {
namespace {

namespace bsp = core::bsp;
using Json = nlohmann::ordered_json;

// Its elements in row-major order: from one (included) to one (not), and the tile.
Json tiles_of(const bsp::Variable& variable) {
  Json tiles = Json::array();
  for (const bsp::MappedInterval& part : variable.mapping.intervals())
    tiles.push_back({part.begin, part.end, part.tile});
  return tiles;
}

Json variables_of(const core::GraphState& state) {
  Json variables = Json::array();
  const bsp::GraphData& graph = state.graph.data();
  for (std::size_t i = 0; i < graph.variables.size(); ++i) {
    const bsp::Variable& variable = graph.variables[i];
    variables.push_back({{"name", variable.name},
                         {"type", Type(state.types.at(i).id()).toString()},
                         {"shape", variable.shape.extents()},
                         {"constant", variable.constant},
                         {"tiles", tiles_of(variable)}});
  }
  return variables;
}

Json vertices_of(const bsp::GraphData& graph, const bsp::ComputeSetData& set) {
  Json vertices = Json::array();
  for (const bsp::VertexId id : set.vertices) {
    const bsp::VertexData& vertex = graph.vertices[id.index()];
    vertices.push_back(
        {{"type", vertex.vertex_class->name}, {"tile", vertex.tile ? Json(*vertex.tile) : Json()}});
  }
  return vertices;
}

}  // namespace

void Graph::serialize(std::ostream& out, SerializationFormat) const {
  const core::GraphState& state = *handle().state;
  const bsp::GraphData& graph = state.graph.data();
  Json sets = Json::array();
  for (const bsp::ComputeSetData& set : graph.compute_sets)
    sets.push_back({{"name", set.name}, {"vertices", vertices_of(graph, set)}});
  const Json text{{"format", "superstep-poplar-graph"},
                  {"version", 1},
                  {"variables", variables_of(state)},
                  {"computeSets", std::move(sets)}};
  out << text.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  if (!out.flush()) throw poplar_error("the graph cannot be written: the stream has failed");
}

}  // namespace poplar
