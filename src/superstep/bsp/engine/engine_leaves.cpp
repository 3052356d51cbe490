#include "superstep/bsp/engine/engine_leaves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "superstep/base/error.h"
#include "superstep/bsp/graph/print_tensor.h"

namespace superstep::bsp {

Leaves::Leaves(const ExecutableData& data, const EngineOptions& options)
    : data_(data),
      options_(options),
      replicas_(data.profile.replicas),
      streams_(data.streams, replicas_),
      remote_(options.timing_only ? std::span<const RemoteBufferData>() : data.buffers, replicas_),
      pool_(std::max(1, options.threads)) {}

void Leaves::load() {
  instances_.clear();
  memory_.clear();
  for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
    memory_.push_back(std::make_unique<ReplicaMemory>(data_.variables, replica));
    auto& sets = instances_.emplace_back();
    for (const LoweredComputeSet& set : data_.compute_sets)
      sets.push_back(std::make_unique<VertexInstances>(set, *memory_[replica], data_.profile.device.workers));
  }
}

void Leaves::run(const LoweredNode& node, const Replicas& replicas) {
  const std::size_t size = size_in_bytes(node.type);
  if (node.kind == ProgramKind::cross_replica_copy) return cross_replica(node, replicas, size);
  if (node.kind == ProgramKind::assume_equal) return require_equal(node, replicas, size);
  for (const std::uint32_t r : replicas) {
    switch (node.kind) {
      case ProgramKind::execute: execute(node, r); break;
      case ProgramKind::copy: memory_[r]->copy(*memory_[r], node.segments, size, node.staged); break;
      case ProgramKind::stream_in: stream_in(node, r, r == replicas[0], size); break;
      case ProgramKind::stream_out: stream_out(node, r); break;
      case ProgramKind::remote_read:
      case ProgramKind::remote_write: remote(node, r); break;
      case ProgramKind::print_tensor:
        print(node, r, node.name, options_.print_to ? *options_.print_to : std::cerr);
        break;
      case ProgramKind::abort_on_condition:
        if (integer(node, r) != 0)
          throw Error(ErrorCode::invalid_argument, "the program stopped itself: " + node.message,
                      "program AbortOnCondition '" + node.name + "'");
        break;
      case ProgramKind::error: stop(node, r); break;
      default: break;
    }
  }
}

void Leaves::execute(const LoweredNode& node, std::uint32_t replica) {
  VertexInstances& vertices = *instances_[replica][node.compute_set];
  vertices.run(pool_);
  if (node.runs.empty()) return;
  std::array<std::byte, 8> status{};
  status[0] = std::byte{vertices.status()};  // little-endian: one, in an integer of any size
  memory_[replica]->scatter(node.runs, size_in_bytes(node.type), status.data());
}

// The count is what ends it less what began it: what is between is in the tensor as a negative number.
void Leaves::count_cycles(const LoweredNode& node, std::uint32_t replica, std::uint64_t now) {
  std::array<std::uint32_t, 2> halves{};
  if (!node.wanted)
    memory_[replica]->gather(node.runs, sizeof halves[0], reinterpret_cast<std::byte*>(halves.data()));
  const std::uint64_t before = halves[0] | std::uint64_t{halves[1]} << 32;
  const std::uint64_t count = node.wanted ? 0 - now : before + now;
  halves = {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count >> 32)};
  memory_[replica]->scatter(node.runs, sizeof halves[0], reinterpret_cast<const std::byte*>(halves.data()));
}

std::vector<std::byte> Leaves::dense(const LoweredNode& node, std::uint32_t replica) const {
  const std::size_t size = size_in_bytes(node.type);
  std::vector<std::byte> buffer(static_cast<std::size_t>(node.shape.element_count()) * size);
  memory_[replica]->gather(node.runs, size, buffer.data());
  return buffer;
}

void Leaves::cross_replica(const LoweredNode& node, const Replicas& replicas, std::size_t size) {
  if (replicas.size() != replicas_)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("only {} of {} replicas came to it: a branch parted them", replicas.size(), replicas_),
        "program CrossReplicaCopy '" + node.name + "'", "let all replicas take the same branch");
  // All sources are read before any destination is written.
  std::vector<std::vector<std::byte>> buffers;
  for (const std::uint32_t r : replicas) {
    std::vector<std::byte>& buffer = buffers.emplace_back();
    const ReplicaMemory& from = *memory_[node.replica_map[r]];
    for (const Segment& s : node.segments) {
      const Run run{0, s.length, s.source, s.source_element, s.source_stride};
      const std::size_t begin = buffer.size();
      buffer.resize(begin + static_cast<std::size_t>(s.length) * size);
      from.gather(std::span(&run, 1), size, buffer.data() + begin);
    }
  }
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const std::byte* next = buffers[i].data();
    for (const Segment& s : node.segments) {
      const Run run{0, s.length, s.destination, s.destination_element, s.destination_stride};
      memory_[replicas[i]]->scatter(std::span(&run, 1), size, next);
      next += static_cast<std::size_t>(s.length) * size;
    }
  }
}

void Leaves::require_equal(const LoweredNode& node, const Replicas& replicas, std::size_t size) const {
  const auto require = [&](std::span<const std::byte> first, std::span<const std::byte> other,
                           std::size_t one, std::size_t another) {
    const auto differs = std::mismatch(first.begin(), first.end(), other.begin()).first;
    if (differs != first.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("element {} differs between replicas {} and {}",
                              static_cast<std::size_t>(differs - first.begin()) / size, one, another),
                  "program AssumeEqualAcrossReplicas '" + node.name + "'");
  };
  const std::vector<std::byte> first = dense(node, replicas[0]);
  for (const std::uint32_t r : replicas) require(first, dense(node, r), replicas[0], r);
  const std::size_t inside = std::max<std::size_t>(node.count, 1), bytes = first.size() / inside;
  for (std::size_t i = 1; i < inside; ++i)
    require(std::span(first).first(bytes), std::span(first).subspan(i * bytes, bytes), 0, i);
}

void Leaves::stream_in(const LoweredNode& node, std::uint32_t replica, bool first, std::size_t size) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(node.shape.element_count()) * size);
  streams_.read(node.stream, replica, first, buffer.data());
  memory_[replica]->scatter(node.runs, size, buffer.data());
}

void Leaves::stream_out(const LoweredNode& node, std::uint32_t replica) {
  streams_.write(node.stream, replica, dense(node, replica).data());
}

void Leaves::remote(const LoweredNode& node, std::uint32_t replica) {
  std::vector<std::int64_t> rows{0};
  if (!node.offsets.empty()) {
    rows.clear();
    for (const Run& run : node.offsets)
      for (std::int64_t i = 0; i < run.length; ++i)
        rows.push_back(integer_at(memory_[replica]->bytes(run.variable), node.offset_type,
                                  run.element + i * run.stride));
  }
  const std::size_t bytes = remote_.row_bytes(node.buffer), size = size_in_bytes(node.type);
  std::vector<std::byte> buffer = dense(node, replica);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::byte* row = remote_.row(node.buffer, replica, rows[i]);
    if (node.kind == ProgramKind::remote_read)
      std::memcpy(buffer.data() + i * bytes, row, bytes);
    else
      std::memcpy(row, buffer.data() + i * bytes, bytes);
  }
  if (node.kind == ProgramKind::remote_read) memory_[replica]->scatter(node.runs, size, buffer.data());
}

void Leaves::print(const LoweredNode& node, std::uint32_t replica, std::string title,
                   std::ostream& out) const {
  if (replicas_ > 1) title += fmt::format(" (replica {})", replica);
  const std::vector<std::byte> elements = dense(node, replica);
  if (node.printer)
    node.printer(out, title, node.type, node.shape, elements.data());
  else
    print_tensor(out, title, node.type, node.shape, elements.data());
}

void Leaves::stop(const LoweredNode& node, std::uint32_t replica) const {
  if (!node.runs.empty())
    print(node, replica, node.message, options_.print_to ? *options_.print_to : std::cerr);
  throw Error(ErrorCode::invalid_argument, "the program stopped itself: " + node.message,
              "program ErrorProgram '" + node.name + "'");
}

}  // namespace superstep::bsp
