// What a vertex costs.
#ifndef poplar_PerfEstimateFunc_hpp
#define poplar_PerfEstimateFunc_hpp

#include <cstdint>

namespace poplar {

struct VertexPerfEstimate {
  std::uint64_t cycles, flops;
  VertexPerfEstimate() : cycles(0), flops(0) {}
  VertexPerfEstimate(std::uint64_t cycleCount, std::uint64_t flopCount = 0)
      : cycles(cycleCount), flops(flopCount) {}
};

}  // namespace poplar

#endif
