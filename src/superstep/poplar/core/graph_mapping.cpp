// Which tile each element lies on, and graphs on some of the tiles.
#include <poplar/Graph.hpp>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/replicas/replicas.h"

namespace poplar {
namespace {

using core::guarded;
using core::single_tensor;

}  // namespace

void Graph::setTileMapping(const Tensor& tensor, unsigned tile) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.setTileMapping(replicas->part(tensor, replica), tile);
    });
  try {
    handle().graph.set_tile_mapping(single_tensor(tensor), tile);
  } catch (const superstep::Error& error) {
    throw invalid_tile_mapping(error.what());
  }
}

void Graph::setTileMapping(const Tensor& tensor, const TileToTensorMapping& mapping) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.setTileMapping(replicas->part(tensor, replica), mapping);
    });
  core::bsp::TileMapping intervals(mapping.size());
  const std::size_t count = tensor.numElements();
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const Interval& interval : mapping[tile]) {
      if (interval.begin() > interval.end() || interval.end() > count)
        throw index_error(fmt::format("setTileMapping: [{}, {}) lies outside tensor {}", interval.begin(),
                                      interval.end(), core::describe(tensor)));
      intervals[tile].push_back(
          {static_cast<std::int64_t>(interval.begin()), static_cast<std::int64_t>(interval.end())});
    }
  try {
    handle().graph.map_intervals(single_tensor(tensor), intervals);
  } catch (const superstep::Error& error) {
    throw invalid_tile_mapping(error.what());
  }
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& tensor, bool require_complete) const {
  bool complete = true;
  TileToTensorMapping mapping = getTileMapping(tensor, &complete);
  if (require_complete && !complete)
    throw invalid_tile_mapping("some elements have no tile of this graph: tensor " + core::describe(tensor) +
                               " (call setTileMapping)");
  return mapping;
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& tensor, bool* is_complete) const {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->graphs()[0].getTileMapping(replicas->part(tensor, 0), is_complete);
  bool complete = true;
  TileToTensorMapping result;
  guarded([&] {
    for (const auto& list : handle().graph.tile_mapping(single_tensor(tensor), complete)) {
      std::vector<Interval>& intervals = result.emplace_back();
      for (const core::bsp::Interval& interval : list)
        intervals.emplace_back(static_cast<std::size_t>(interval.begin),
                               static_cast<std::size_t>(interval.end));
    }
  });
  if (is_complete) *is_complete = complete;
  return result;
}

Graph Graph::createVirtualGraph(unsigned tiles_per_ipu) const {
  return Graph(core::view_of(
      handle(), [&](const core::bsp::Graph& graph) { return graph.create_virtual_graph(tiles_per_ipu); }));
}

Graph Graph::createVirtualGraph(unsigned lower, unsigned upper) const {
  return Graph(core::view_of(
      handle(), [&](const core::bsp::Graph& graph) { return graph.create_virtual_graph(lower, upper); }));
}

Graph Graph::createVirtualGraph(const std::vector<unsigned>& per_ipu) const {
  std::vector<std::uint32_t> tiles;
  for (unsigned ipu = 0; ipu < getTarget().getNumIPUs(); ++ipu)
    for (const unsigned tile : per_ipu) tiles.push_back(ipu * getTarget().getTilesPerIPU() + tile);
  return Graph(core::view_of(
      handle(), [&](const core::bsp::Graph& graph) { return graph.create_virtual_graph(tiles); }));
}

Graph Graph::getTopLevelGraph() const {
  std::size_t replica = 0;
  return Graph(core::view_of(handle(), [&](const core::bsp::Graph&) {
    return handle().replicas ? handle().replicas->replication()->wholes[replica++] : handle().state->graph;
  }));
}

unsigned Graph::convertVirtualTileToPhysicalTile(unsigned tile) const {
  return guarded([&] { return handle().graph.physical_tile(tile); });
}

unsigned Graph::convertPhysicalTileToVirtualTile(unsigned tile) const {
  for (unsigned i = 0; i < getTarget().getNumTiles(); ++i)
    if (convertVirtualTileToPhysicalTile(i) == tile) return i;
  throw invalid_tile_mapping(fmt::format("tile {} of the device is not in this graph", tile));
}

}  // namespace poplar
