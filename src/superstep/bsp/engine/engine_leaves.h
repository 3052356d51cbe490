// The steps of a program that compute or move data, carried out in the memory of all replicas. Control flow
// and clocks are the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/bsp/engine/engine.h"
#include "superstep/bsp/engine/engine_streams.h"
#include "superstep/bsp/engine/engine_vertices.h"

namespace superstep::bsp {

using Replicas = std::vector<std::uint32_t>;

class Leaves {
 public:
  // Both must outlive it.
  Leaves(const ExecutableData& data, const EngineOptions& options);

  // Fresh memory and vertices; nothing else may be called before.
  void load();

  void run(const LoweredNode& node, const Replicas& replicas);
  // Begins a count of cycles, or ends it, where the replica's clock is `now`.
  void count_cycles(const LoweredNode& node, std::uint32_t replica, std::uint64_t now);
  // The whole number that a node's condition or case looks at.
  std::int64_t integer(const LoweredNode& node, std::uint32_t replica) const {
    return memory_[replica]->integer(node.runs, node.type);
  }

  ReplicaMemory& memory(std::uint32_t replica) { return *memory_[replica]; }
  const ReplicaMemory& memory(std::uint32_t replica) const { return *memory_[replica]; }
  Streams& streams() { return streams_; }
  RemoteMemory& remote_memory() { return remote_; }

 private:
  std::vector<std::byte> dense(const LoweredNode& node, std::uint32_t replica) const;
  void execute(const LoweredNode& node, std::uint32_t replica);
  void cross_replica(const LoweredNode& node, const Replicas& replicas, std::size_t size);
  void require_equal(const LoweredNode& node, const Replicas& replicas, std::size_t size) const;
  void stream_in(const LoweredNode& node, std::uint32_t replica, bool first, std::size_t size);
  void stream_out(const LoweredNode& node, std::uint32_t replica);
  void remote(const LoweredNode& node, std::uint32_t replica);
  void print(const LoweredNode& node, std::uint32_t replica, std::string title, std::ostream& out) const;
  [[noreturn]] void stop(const LoweredNode& node, std::uint32_t replica) const;

  const ExecutableData& data_;
  const EngineOptions& options_;
  std::uint32_t replicas_;
  Streams streams_;
  RemoteMemory remote_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<ReplicaMemory>> memory_;
  std::vector<std::vector<std::unique_ptr<VertexInstances>>> instances_;  // replica, compute set
};

}  // namespace superstep::bsp
