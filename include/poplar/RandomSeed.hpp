// States of the tiles' random generators. Codelets that draw on this host do not look at them: the programs
// are legal, what is read is a fixed number of each tile.
#ifndef poplar_RandomSeed_hpp
#define poplar_RandomSeed_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#pragma GCC visibility push(default)

namespace poplar {

// UNSIGNED_INT of tiles, workers and 4.
Tensor getHwSeeds(Graph& graph, program::Sequence& sequence, const DebugContext& debugContext = {});
void setHwSeeds(Graph& graph, const Tensor& seeds, program::Sequence& sequence,
                const DebugContext& debugContext = {});

}  // namespace poplar

#pragma GCC visibility pop

#endif
