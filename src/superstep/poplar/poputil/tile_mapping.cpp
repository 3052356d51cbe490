#include <algorithm>
#include <poputil/TileMapping.hpp>

namespace poputil {
namespace {

using Mapping = poplar::Graph::TileToTensorMapping;

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// As many tiles as keep the least a tile, the grains dealt to them as evenly as they come.
Mapping linear(const poplar::Graph& graph, std::size_t elements, std::size_t least, std::size_t grain) {
  const std::size_t tiles = graph.getTarget().getNumTiles();
  Mapping mapping(tiles);
  const std::size_t grains = divide_up(elements, grain);
  const std::size_t least_grains = std::max<std::size_t>(divide_up(least, grain), 1);
  const std::size_t used = std::min(tiles, std::max<std::size_t>(grains / least_grains, 1));
  for (std::size_t tile = 0; tile < used; ++tile) {
    const std::size_t begin = std::min(elements, tile * grains / used * grain);
    const std::size_t end = std::min(elements, (tile + 1) * grains / used * grain);
    if (begin < end) mapping[tile].emplace_back(begin, end);
  }
  return mapping;
}

constexpr std::size_t least_bytes = 128;  // of a share: below it a tile's exchange costs more than it saves

}  // namespace

Mapping calcLinearTileMapping(const poplar::Graph& graph, poplar::ArrayRef<std::size_t> shape, unsigned least,
                              unsigned grain) {
  std::size_t elements = 1;
  for (const std::size_t extent : shape) elements *= extent;
  return linear(graph, elements, least, std::max(grain, 1u));
}

Mapping calcLinearTileMapping(const poplar::Graph& graph, const poplar::Tensor& tensor) {
  const poplar::Target& target = graph.getTarget();
  const std::size_t size = target.getTypeSize(tensor.elementType());
  return linear(graph, tensor.numElements(), divide_up(least_bytes, size),
                target.getVectorWidth(tensor.elementType()));
}

void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& tensor, unsigned least, unsigned grain) {
  graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor.shape(), least, grain));
}

void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& tensor) {
  graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor));
}

}  // namespace poputil
