// Which tile each element lies on, and graphs on some of the tiles.
#include <poplar/Graph.hpp>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"

namespace poplar {
namespace {

using core::guarded;
using core::machine_tensor;

std::unique_ptr<core::GraphHandle> on_tiles(const core::GraphHandle& whole, core::bsp::Graph graph) {
  core::TargetData target = whole.target.data();
  target.device = graph.device();
  return std::make_unique<core::GraphHandle>(core::GraphHandle{
      whole.state, std::move(graph), Target(std::make_shared<const core::TargetData>(std::move(target)))});
}

}  // namespace

void Graph::setTileMapping(const Tensor& tensor, unsigned tile) {
  try {
    handle().graph.set_tile_mapping(machine_tensor(tensor), tile);
  } catch (const superstep::Error& error) {
    throw invalid_tile_mapping(error.what());
  }
}

void Graph::setTileMapping(const Tensor& tensor, const TileToTensorMapping& mapping) {
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
    handle().graph.map_intervals(machine_tensor(tensor), intervals);
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
  bool complete = true;
  TileToTensorMapping result;
  guarded([&] {
    for (const auto& list : handle().graph.tile_mapping(machine_tensor(tensor), complete)) {
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
  return guarded(
      [&] { return Graph(on_tiles(handle(), handle().graph.create_virtual_graph(tiles_per_ipu))); });
}

Graph Graph::createVirtualGraph(unsigned lower, unsigned upper) const {
  return guarded(
      [&] { return Graph(on_tiles(handle(), handle().graph.create_virtual_graph(lower, upper))); });
}

Graph Graph::createVirtualGraph(const std::vector<unsigned>& per_ipu) const {
  std::vector<std::uint32_t> tiles;
  for (unsigned ipu = 0; ipu < getTarget().getNumIPUs(); ++ipu)
    for (const unsigned tile : per_ipu) tiles.push_back(ipu * getTarget().getTilesPerIPU() + tile);
  return guarded(
      [&] { return Graph(on_tiles(handle(), handle().graph.create_virtual_graph(std::move(tiles)))); });
}

Graph Graph::getTopLevelGraph() const { return Graph(on_tiles(handle(), handle().state->graph)); }

unsigned Graph::convertVirtualTileToPhysicalTile(unsigned tile) const {
  return guarded([&] { return handle().graph.physical_tile(tile); });
}

unsigned Graph::convertPhysicalTileToVirtualTile(unsigned tile) const {
  for (unsigned i = 0; i < getTarget().getNumTiles(); ++i)
    if (convertVirtualTileToPhysicalTile(i) == tile) return i;
  throw invalid_tile_mapping(fmt::format("tile {} of the device is not in this graph", tile));
}

Graph Graph::createReplicatedGraph(unsigned factor) const {
  if (factor != 1)
    throw graph_replication_error(fmt::format(
        "createReplicatedGraph({}): give the factor to the Graph, as replication_factor", factor));
  return Graph(on_tiles(handle(), handle().graph));
}

Tensor Graph::getNonReplicatedTensor(const Tensor& tensor) const { return tensor.expand({0}); }

}  // namespace poplar
