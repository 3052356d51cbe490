// The vertex objects of a replica, bound to its variables, and how a compute set runs.
#pragma once

#include <memory>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/bsp/engine/engine_memory.h"

namespace superstep::bsp {

class VertexInstances {
 public:
  VertexInstances(const LoweredComputeSet& set, ReplicaMemory& memory, std::uint32_t workers);
  ~VertexInstances();
  VertexInstances(const VertexInstances&) = delete;
  VertexInstances& operator=(const VertexInstances&) = delete;

  // Runs every vertex once. A compute set has no races, so any order gives the same bits.
  void run(ThreadPool& pool);
  // Whether every vertex said yes in its last run.
  bool status() const;

 private:
  struct Scratch {
    std::vector<std::byte> bytes;
    std::vector<Piece> pieces;
    std::vector<std::size_t> offsets;  // of a vertex's pieces, in their order: where they are in `bytes`
  };
  void* object(std::size_t vertex) const { return storage_.get() + offsets_[vertex]; }
  void set_state(std::size_t vertex);
  void bind_direct(std::size_t vertex);
  void lay_out(const LoweredVertex& vertex, Scratch& scratch) const;
  void run_vertex(std::size_t vertex, Scratch& scratch);
  void compute(std::size_t vertex);
  std::size_t element_bytes(const LoweredVertex& vertex, const LoweredField& field) const;

  const LoweredComputeSet& set_;
  ReplicaMemory& memory_;
  std::uint32_t workers_;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> storage_;
  std::vector<std::size_t> offsets_;
  std::vector<bool> gathers_;  // some of the vertex's pieces are not contiguous
};

}  // namespace superstep::bsp
