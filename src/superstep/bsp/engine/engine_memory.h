// The variables' elements of one replica, and how elements move between them and dense buffers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "superstep/bsp/compile/executable_data.h"

namespace superstep::bsp {

class ReplicaMemory {
 public:
  // Every variable at its initial value, zero where it has none.
  ReplicaMemory(std::span<const VariableInfo> variables, std::uint32_t replica);

  std::byte* bytes(VariableId id) { return buffers_[id.index()].get(); }
  const std::byte* bytes(VariableId id) const { return buffers_[id.index()].get(); }

  void gather(std::span<const Run> runs, std::size_t element_bytes, std::byte* out) const;
  void scatter(std::span<const Run> runs, std::size_t element_bytes, const std::byte* in);
  void gather(std::span<const RunBlock> blocks, std::size_t element_bytes, std::byte* out) const;
  void scatter(std::span<const RunBlock> blocks, std::size_t element_bytes, const std::byte* in);
  // From the memory of this or another replica; `staged` reads everything before it writes.
  void copy(const ReplicaMemory& from, std::span<const Segment> segments, std::size_t element_bytes,
            bool staged);

  // The first of the elements as an integer: predicates, cases, offsets.
  std::int64_t integer(std::span<const Run> runs, Type type) const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::vector<std::unique_ptr<std::byte, Free>> buffers_;
};

std::int64_t integer_at(const std::byte* data, Type type, std::int64_t index);

}  // namespace superstep::bsp
