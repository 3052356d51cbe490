// Spreading tensors over tiles.
#ifndef poputil_TileMapping_hpp
#define poputil_TileMapping_hpp

#include <cstddef>
#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>

#pragma GCC visibility push(default)

namespace poputil {

// Consecutive elements to tiles, in order from tile 0: equal shares in grains of `grainSize` elements, each
// of at least `minElementsPerTile`.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph,
                                                         poplar::ArrayRef<std::size_t> shape,
                                                         unsigned minElementsPerTile, unsigned grainSize);
// With grains of a vector of the tensor's type, and at least 128 bytes a tile.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph,
                                                         const poplar::Tensor& tensor);

void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& tensor, unsigned minElementsPerTile,
                       unsigned grainSize);
void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& tensor);

}  // namespace poputil

#pragma GCC visibility pop

#endif
