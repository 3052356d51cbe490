// What a vertex costs, and how that is asked.
#ifndef poplar_PerfEstimateFunc_hpp
#define poplar_PerfEstimateFunc_hpp

#include <cstdint>
#include <functional>
#include <poplar/Target.hpp>
#include <poplar/VertexIntrospector.hpp>

namespace poplar {

struct VertexPerfEstimate {
  std::uint64_t cycles, flops;
  VertexPerfEstimate() : cycles(0), flops(0) {}
  VertexPerfEstimate(std::uint64_t cycleCount, std::uint64_t flopCount = 0)
      : cycles(cycleCount), flops(flopCount) {}
};

using PerfEstimateFunc =
    std::function<VertexPerfEstimate(const VertexIntrospector& vertex, const Target& target)>;

}  // namespace poplar

#endif
