// What compiled programs consist of, for archives.
#pragma once

#include "superstep/bsp/compile/executable_data.h"
#include "superstep/poplar/executable/archive.h"

namespace superstep {

template <class A>
void archived(A& archive, Tensor& tensor) {
  using poplar::core::archived;
  ElementType type = tensor.type();
  std::vector<std::int64_t> extents = tensor.shape().extents();
  archived(archive, type);
  archived(archive, extents);
  if constexpr (A::reading) {
    if (static_cast<int>(type) > static_cast<int>(ElementType::boolean))
      throw poplar::graph_object_load_error("the executable is damaged: a tensor of no type");
    std::uint64_t count = 1;  // each step is held to what can still follow: none overflows
    for (const std::int64_t extent : extents) {
      if (extent < 0)
        throw poplar::graph_object_load_error("the executable is damaged: a tensor of no shape");
      archive.need(static_cast<std::size_t>(extent));
      count *= static_cast<std::uint64_t>(extent);
      archive.need(count);
    }
    archive.need(count * size_in_bytes(type));
    tensor = Tensor(type, Shape(std::move(extents)));
  }
  archive.raw(tensor.bytes(), tensor.byte_count());
}

template <class A>
void archived(A& archive, Shape& shape) {
  std::vector<std::int64_t> extents = shape.extents();
  poplar::core::archived(archive, extents);
  if constexpr (A::reading) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents)
      if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
        throw poplar::graph_object_load_error("the executable is damaged: no shape");
    shape = Shape(std::move(extents));
  }
}

}  // namespace superstep

namespace superstep::bsp {

#define POPLAR_ARCHIVED(Type, ...)      \
  template <class A>                    \
  void archived(A& archive, Type& x) {  \
    using poplar::core::archived_all;   \
    archived_all(archive, __VA_ARGS__); \
  }

POPLAR_ARCHIVED(Interval, x.begin, x.end)
POPLAR_ARCHIVED(Run, x.place, x.length, x.variable, x.element, x.stride)
POPLAR_ARCHIVED(RunBlock, x.variable, x.place, x.place_step, x.element, x.element_step, x.count, x.length,
                x.stride)
POPLAR_ARCHIVED(LoweredPiece, x.variable, x.element, x.size, x.first_block, x.blocks, x.same_as)
POPLAR_ARCHIVED(LoweredField, x.field, x.first_piece, x.pieces)
POPLAR_ARCHIVED(Segment, x.source, x.destination, x.source_element, x.source_stride, x.destination_element,
                x.destination_stride, x.length)
POPLAR_ARCHIVED(LoweredNode, x.kind, x.name, x.step, x.children, x.compute_set, x.segments, x.staged, x.type,
                x.shape, x.runs, x.offsets, x.offset_type, x.cases, x.replica_map, x.count, x.wanted,
                x.stream, x.buffer, x.message)
POPLAR_ARCHIVED(StreamData, x.handle, x.type, x.elements, x.to_device, x.mode)
POPLAR_ARCHIVED(RemoteBufferData, x.handle, x.type, x.elements, x.repeats)
POPLAR_ARCHIVED(LoweredHandle, x.type, x.count, x.runs)
POPLAR_ARCHIVED(OpenConstant, x.value, x.low, x.high)
POPLAR_ARCHIVED(Device, x.name, x.ipus, x.tiles_per_ipu, x.workers, x.bytes_per_tile, x.interleaved_start,
                x.memory_element_bytes, x.clock_hz, x.exchange_bytes_per_cycle, x.memcpy_bytes_per_cycle,
                x.data_path_bytes, x.half_in_half_out_units, x.half_in_float_out_units,
                x.float_in_float_out_units, x.half_weights_per_unit, x.float_weights_per_unit,
                x.half_cycles_per_vector, x.float_cycles_per_vector, x.unit_pipeline_depth,
                x.coefficient_load_bytes_per_cycle, x.repeat_count_max, x.link_bytes_per_second,
                x.links_in_rung, x.links_across, x.links_along, x.sync_hop_seconds, x.host_bytes_per_second,
                x.streaming_bytes_per_second, x.streaming_bytes, x.constants)
POPLAR_ARCHIVED(TileMemory, x.variables, x.constants, x.vertex_state, x.vertex_code, x.exchange_code,
                x.control_code, x.runtime, x.host_buffers, x.not_always_live, x.gaps)
POPLAR_ARCHIVED(LivenessStep, x.name, x.kind, x.not_always_live_bytes, x.max_tile_bytes, x.largest)
POPLAR_ARCHIVED(VertexKindProfile, x.name, x.instances, x.state_bytes, x.code_bytes, x.default_estimate,
                x.counted)
POPLAR_ARCHIVED(StepCost, x.sync, x.exchange, x.global_exchange, x.host_exchange, x.compute, x.control)
POPLAR_ARCHIVED(StepProfile, x.name, x.kind, x.cost, x.vertices, x.compute_tiles, x.compute_cycles_all,
                x.compute_cycles_busy, x.exchange_cycles_all, x.exchanged_bytes, x.link_bytes, x.host_bytes,
                x.max_bytes_in, x.max_bytes_out, x.max_fragments, x.flops, x.cycles_by_vertex, x.chips)
// How long it took to compile is not kept: an executable has the same bytes every time.
POPLAR_ARCHIVED(CompilationProfile, x.device, x.replicas, x.variables, x.variable_bytes, x.constants,
                x.compute_sets, x.vertices, x.edges, x.programs, x.compute_set_names, x.vertex_kinds, x.tiles,
                x.steps, x.liveness, x.too_full, x.planned)
#undef POPLAR_ARCHIVED

template <class A>
void archived(A& archive, OpenConstants& constants) {
  for (const OpenConstantInfo& info : open_constants()) archived(archive, constants.*info.member);
}

template <class A>
void archived(A& archive, InitialValue& initial) {
  std::vector<Interval> defined = initial.defined.intervals();
  poplar::core::archived_all(archive, initial.splat, initial.values, defined);
  if constexpr (A::reading) initial.defined = IntervalSet(std::move(defined));
}

template <class A>
void archived(A& archive, VariableInfo& x) {
  poplar::core::archived_all(archive, x.name, x.type, x.count, x.initial, x.replica_index);
}

}  // namespace superstep::bsp
