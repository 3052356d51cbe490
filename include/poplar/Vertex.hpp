// What codelets are made of: a class that is derived from Vertex, with fields and compute().
#ifndef poplar_Vertex_hpp
#define poplar_Vertex_hpp

// Codelets use these without including them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poplar/FieldTypes.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/InOutTypes.hpp>
#include <type_traits>
#include <utility>

// Workers' code of a device is aligned; a host's need not be.
#define WORKER_ALIGN

namespace poplar {

// Of one worker's thread. compute() may return bool, for Execute with a predicate, or nothing.
class Vertex {};

// Of all workers of a tile at once: compute(unsigned worker) of each.
class MultiVertex {
 public:
  unsigned numWorkers() const { return workers_; }
  void setWorkers(unsigned workers) { workers_ = workers; }  // of the library

 private:
  unsigned workers_;  // the engine puts it in
};

// Of the whole tile.
class SupervisorVertex {};

template <bool isSupervisor>
using SupervisorVertexIf = typename std::conditional<isSupervisor, SupervisorVertex, Vertex>::type;

}  // namespace poplar

#endif
