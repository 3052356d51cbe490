#include "superstep/bsp/engine/engine_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "superstep/bsp/graph/fill.h"

namespace superstep::bsp {
namespace {

constexpr std::size_t alignment = 64;  // bytes: a cache line, so that vertices may be compiled to vector code

std::size_t offset(std::int64_t element, std::size_t bytes) {
  return static_cast<std::size_t>(element) * bytes;
}

template <std::size_t bytes>
void move_strided(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride * static_cast<std::int64_t>(bytes),
                from + i * from_stride * static_cast<std::int64_t>(bytes), bytes);
}

void move_elements(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                   std::int64_t count, std::size_t bytes) {
  if (to_stride == 1 && from_stride == 1) {
    std::memmove(to, from, offset(count, bytes));
    return;
  }
  switch (bytes) {
    case 1: return move_strided<1>(to, to_stride, from, from_stride, count);
    case 2: return move_strided<2>(to, to_stride, from, from_stride, count);
    case 4: return move_strided<4>(to, to_stride, from, from_stride, count);
    default: return move_strided<8>(to, to_stride, from, from_stride, count);
  }
}

void fill(std::byte* out, const VariableInfo& variable) {
  const InitialValue& initial = *variable.initial;
  if (initial.values) {
    std::memcpy(out, initial.values->bytes(), variable.bytes());
    return;
  }
  const superstep::Tensor one = superstep::Tensor::full(variable.type, {1}, initial.splat);
  fill_elements(out, static_cast<std::size_t>(variable.count), one.bytes(), size_in_bytes(variable.type));
}

}  // namespace

void ReplicaMemory::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, std::align_val_t(alignment));
}

ReplicaMemory::ReplicaMemory(std::span<const VariableInfo> variables, std::uint32_t replica) {
  for (const VariableInfo& variable : variables) {
    const std::size_t bytes = std::max<std::size_t>(variable.bytes(), 1);
    buffers_.emplace_back(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment))));
    if (variable.replica_index)
      std::memcpy(buffers_.back().get(), &replica, sizeof replica);
    else if (variable.initial)
      fill(buffers_.back().get(), variable);
    else
      std::memset(buffers_.back().get(), 0, bytes);
  }
}

void ReplicaMemory::gather(std::span<const Run> runs, std::size_t element_bytes, std::byte* out) const {
  for (const Run& run : runs)
    move_elements(out + offset(run.place, element_bytes), 1,
                  bytes(run.variable) + offset(run.element, element_bytes), run.stride, run.length,
                  element_bytes);
}

void ReplicaMemory::scatter(std::span<const Run> runs, std::size_t element_bytes, const std::byte* in) {
  for (const Run& run : runs)
    move_elements(bytes(run.variable) + offset(run.element, element_bytes), run.stride,
                  in + offset(run.place, element_bytes), 1, run.length, element_bytes);
}

void ReplicaMemory::gather(std::span<const RunBlock> blocks, std::size_t element_bytes,
                           std::byte* out) const {
  for (const RunBlock& block : blocks) {
    const std::byte* from = bytes(block.variable) + offset(block.element, element_bytes);
    std::byte* to = out + offset(block.place, element_bytes);
    const auto size = static_cast<std::int64_t>(element_bytes);
    for (std::int64_t i = 0; i < block.count; ++i)
      move_elements(to + i * block.place_step * size, 1, from + i * block.element_step * size, block.stride,
                    block.length, element_bytes);
  }
}

void ReplicaMemory::scatter(std::span<const RunBlock> blocks, std::size_t element_bytes,
                            const std::byte* in) {
  for (const RunBlock& block : blocks) {
    std::byte* to = bytes(block.variable) + offset(block.element, element_bytes);
    const std::byte* from = in + offset(block.place, element_bytes);
    const auto size = static_cast<std::int64_t>(element_bytes);
    for (std::int64_t i = 0; i < block.count; ++i)
      move_elements(to + i * block.element_step * size, block.stride, from + i * block.place_step * size, 1,
                    block.length, element_bytes);
  }
}

void ReplicaMemory::copy(const ReplicaMemory& from, std::span<const Segment> segments,
                         std::size_t element_bytes, bool staged) {
  if (!staged) {
    for (const Segment& s : segments)
      move_elements(bytes(s.destination) + offset(s.destination_element, element_bytes), s.destination_stride,
                    from.bytes(s.source) + offset(s.source_element, element_bytes), s.source_stride, s.length,
                    element_bytes);
    return;
  }
  std::int64_t total = 0;
  for (const Segment& s : segments) total += s.length;
  std::vector<std::byte> buffer(offset(total, element_bytes));
  std::byte* next = buffer.data();
  for (const Segment& s : segments) {
    move_elements(next, 1, from.bytes(s.source) + offset(s.source_element, element_bytes), s.source_stride,
                  s.length, element_bytes);
    next += offset(s.length, element_bytes);
  }
  next = buffer.data();
  for (const Segment& s : segments) {
    move_elements(bytes(s.destination) + offset(s.destination_element, element_bytes), s.destination_stride,
                  next, 1, s.length, element_bytes);
    next += offset(s.length, element_bytes);
  }
}

std::int64_t integer_at(const std::byte* data, Type type, std::int64_t index) {
  return dispatch(type, [&]<class T>() -> std::int64_t {
    T value;
    std::memcpy(&value, data + offset(index, sizeof(T)), sizeof(T));
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
      return static_cast<std::int64_t>(static_cast<float>(value));
    else
      return static_cast<std::int64_t>(value);
  });
}

std::int64_t ReplicaMemory::integer(std::span<const Run> runs, Type type) const {
  return integer_at(bytes(runs[0].variable), type, runs[0].element);
}

}  // namespace superstep::bsp
