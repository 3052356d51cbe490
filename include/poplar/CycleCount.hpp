// Cycles that a program takes, counted by the program.
#ifndef poplar_CycleCount_hpp
#define poplar_CycleCount_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#pragma GCC visibility push(default)

namespace poplar {

// Puts what the sequence holds so far between a barrier and a count: two UNSIGNED_INT on `tile`, the lower
// half first, that hold its cycles when it has run.
Tensor cycleCount(Graph& graph, program::Sequence& sequence, unsigned tile,
                  SyncType syncType = SyncType::INTERNAL, const DebugContext& debugContext = {});
Tensor cycleCount(Graph& graph, program::Sequence& sequence, unsigned tile, const DebugContext& debugContext);

}  // namespace poplar

#pragma GCC visibility pop

#endif
