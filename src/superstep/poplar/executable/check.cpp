#include "superstep/poplar/executable/check.h"

#include <fmt/format.h>

#include <poplar/exceptions.hpp>

namespace poplar::core {
namespace {

namespace bsp = superstep::bsp;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 46;  // chosen: of a variable; more than any host has

void need(bool holds, const char* what) {
  if (!holds) throw graph_object_load_error(fmt::format("the executable is damaged: {}", what));
}

bool is_type(bsp::Type type) { return static_cast<int>(type) <= static_cast<int>(bsp::Type::boolean); }

// The lowest and the highest of `count` numbers that go on by `step` from `first` lie in [0, end).
bool lies_in(std::int64_t first, std::int64_t step, std::int64_t count, std::int64_t end) {
  std::int64_t reach = 0, last = 0;
  if (count < 0 || __builtin_mul_overflow(count - 1, step, &reach) ||
      __builtin_add_overflow(first, reach, &last))
    return false;
  return count == 0 || (std::min(first, last) >= 0 && std::max(first, last) < end);
}

class Checker {
 public:
  explicit Checker(const bsp::ExecutableData& data) : data_(data) {}

  void all() {
    for (const bsp::VariableInfo& variable : data_.variables) variable_is_sound(variable);
    for (const bsp::StreamData& stream : data_.streams)
      need(is_type(stream.type) && stream.elements >= 0 && fits(stream.elements, stream.type), "a stream");
    for (const bsp::RemoteBufferData& buffer : data_.buffers)
      need(is_type(buffer.type) && buffer.elements > 0 && buffer.repeats > 0 &&
               fits(buffer.elements, buffer.type) &&
               buffer.repeats <= static_cast<std::int64_t>(most_bytes) / (buffer.elements * 8),
           "a remote buffer");
    for (const bsp::LoweredComputeSet& set : data_.compute_sets) compute_set(set);
    for (std::size_t i = 0; i < data_.nodes.size(); ++i) node(data_.nodes[i], i);
    for (const std::uint32_t program : data_.programs) need(program < data_.nodes.size(), "a program");
    for (const auto* handles : {&data_.writes, &data_.reads})
      for (const auto& [name, handle] : *handles) {
        need(is_type(handle.type) && handle.count >= 0 && fits(handle.count, handle.type),
             "a handle of the host");
        runs(handle.runs, handle.type, handle.count);
      }
    profile();
  }

 private:
  static bool fits(std::int64_t count, bsp::Type type) {
    return count <= static_cast<std::int64_t>(most_bytes / size_in_bytes(type));
  }

  void variable_is_sound(const bsp::VariableInfo& variable) const {
    need(is_type(variable.type) && variable.count >= 0 && fits(variable.count, variable.type), "a variable");
    need(!variable.replica_index || (variable.type == bsp::Type::u32 && variable.count == 1),
         "a number of a replica");
    if (variable.initial && variable.initial->values)
      need(variable.initial->values->type() == variable.type &&
               variable.initial->values->element_count() == variable.count,
           "an initial value");
  }

  const bsp::VariableInfo& variable(bsp::VariableId id, bsp::Type type) const {
    need(id.index() < data_.variables.size() && data_.variables[id.index()].type == type,
         "elements of no variable");
    return data_.variables[id.index()];
  }

  // Every place of a tensor of `count` elements once would be too much to ask: none lies outside.
  void runs(const std::vector<bsp::Run>& list, bsp::Type type, std::int64_t count) const {
    for (const bsp::Run& run : list) {
      need(lies_in(run.place, 1, run.length, count), "places outside of a tensor");
      need(lies_in(run.element, run.stride, run.length, variable(run.variable, type).count),
           "elements outside of a variable");
    }
  }

  void block(const bsp::RunBlock& block, bsp::Type type, std::int64_t count) const {
    const std::int64_t elements = variable(block.variable, type).count;
    std::int64_t reach = 0;
    need(block.length > 0 && block.count > 0 &&
             !__builtin_mul_overflow(block.count - 1, block.place_step, &reach) &&
             lies_in(block.place, block.place_step, block.count, count) &&
             lies_in(block.place, 1, block.length, count) &&
             lies_in(block.place + reach, 1, block.length, count),
         "places outside of a vector");
    need(!__builtin_mul_overflow(block.count - 1, block.element_step, &reach) &&
             lies_in(block.element, block.element_step, block.count, elements) &&
             lies_in(block.element, block.stride, block.length, elements) &&
             lies_in(block.element + reach, block.stride, block.length, elements),
         "elements outside of a variable");
  }

  void compute_set(const bsp::LoweredComputeSet& set) const {
    for (const bsp::LoweredVertex& vertex : set.vertices) {
      std::uint64_t numbers = 0, others = 0;
      for (const bsp::FieldInfo& field : vertex.vertex_class->fields)
        ++(field.shape == bsp::FieldShape::state ? numbers : others);
      need(std::uint64_t{vertex.first_field} + vertex.fields <= set.fields.size() &&
               vertex.fields == others && vertex.first_value + numbers <= set.values.size(),
           "a vertex");
      std::size_t first_piece = 0;
      for (std::uint32_t f = 0; f < vertex.fields; ++f) {
        const bsp::LoweredField& lowered = set.fields[vertex.first_field + f];
        if (f == 0) first_piece = lowered.first_piece;
        field(set, *vertex.vertex_class, lowered, first_piece);
      }
    }
  }

  void field(const bsp::LoweredComputeSet& set, const bsp::VertexClass& owner,
             const bsp::LoweredField& lowered, std::size_t first_piece) const {
    need(lowered.field < owner.fields.size() &&
             std::uint64_t{lowered.first_piece} + lowered.pieces <= set.pieces.size() &&
             lowered.first_piece >= first_piece,
         "a field");
    const bsp::FieldInfo& info = owner.fields[lowered.field];
    need(info.shape != bsp::FieldShape::state &&
             (info.shape == bsp::FieldShape::vector_list || lowered.pieces == 1),
         "a field");
    for (std::uint32_t p = 0; p < lowered.pieces; ++p) {
      const bsp::LoweredPiece& piece = set.pieces[lowered.first_piece + p];
      need(piece.size >= 0 && fits(piece.size, info.type) &&
               (info.shape != bsp::FieldShape::scalar || piece.size == 1),
           "a vector");
      if (piece.blocks == 0) {
        if (piece.variable.valid())
          need(lies_in(piece.element, 1, piece.size, variable(piece.variable, info.type).count), "a vector");
        else
          need(piece.size == 0, "a vector of no variable");
        continue;
      }
      need(std::uint64_t{piece.first_block} + piece.blocks <= set.blocks.size(), "a vector");
      for (std::uint32_t b = 0; b < piece.blocks; ++b)
        block(set.blocks[piece.first_block + b], info.type, piece.size);
      if (piece.same_as == bsp::LoweredPiece::none) continue;
      const std::size_t here = lowered.first_piece + p, same = first_piece + piece.same_as;
      need(same < here && set.pieces[same].size == piece.size && set.pieces[same].blocks > 0 &&
               set.pieces[same].same_as == bsp::LoweredPiece::none,
           "a vector that is another");
    }
  }

  void children(const bsp::LoweredNode& node, std::size_t number, std::size_t wanted) const {
    need(node.children.size() == wanted, "a program's parts");
    for (const std::uint32_t child : node.children) need(child < number, "a program that holds itself");
  }

  void node(const bsp::LoweredNode& node, std::size_t number) const {
    need(static_cast<int>(node.kind) <= static_cast<int>(bsp::ProgramKind::count_cycles) &&
             is_type(node.type) && is_type(node.offset_type),
         "a program of no kind");
    const bool grouped = node.kind == bsp::ProgramKind::sequence || node.kind == bsp::ProgramKind::repeat;
    if (!grouped) need(node.step < data_.profile.steps.size(), "a step");
    switch (node.kind) {
      case bsp::ProgramKind::sequence: return children(node, number, node.children.size());
      case bsp::ProgramKind::repeat: return children(node, number, 1);
      case bsp::ProgramKind::repeat_while:
      case bsp::ProgramKind::branch: children(node, number, 2); return scalar(node);
      case bsp::ProgramKind::switch_case: children(node, number, node.cases.size() + 1); return scalar(node);
      default: children(node, number, 0); return leaf(node);
    }
  }

  void scalar(const bsp::LoweredNode& node) const {
    need(node.runs.size() == 1 && node.runs[0].length == 1 && node.type != bsp::Type::f16 &&
             node.type != bsp::Type::f32 && node.type != bsp::Type::f64 && node.type != bsp::Type::bf16,
         "a predicate");
    runs(node.runs, node.type, 1);
  }

  void leaf(const bsp::LoweredNode& node) const {
    switch (node.kind) {
      case bsp::ProgramKind::execute:
        need(node.compute_set < data_.compute_sets.size(), "a compute set");
        if (!node.runs.empty()) scalar(node);
        return;
      case bsp::ProgramKind::abort_on_condition: return scalar(node);
      case bsp::ProgramKind::copy:
      case bsp::ProgramKind::cross_replica_copy: return segments(node);
      default: break;
    }
    const std::int64_t count = node.shape.element_count();
    need(fits(count, node.type), "a tensor");
    runs(node.runs, node.type, count);
    if (node.kind == bsp::ProgramKind::count_cycles)
      need(count == 2 && node.type == bsp::Type::u32, "a count of cycles");
    if (node.kind == bsp::ProgramKind::stream_in || node.kind == bsp::ProgramKind::stream_out) {
      need(node.stream.index() < data_.streams.size(), "a stream");
      const bsp::StreamData& stream = data_.streams[node.stream.index()];
      need(stream.type == node.type && stream.elements == count &&
               stream.to_device == (node.kind == bsp::ProgramKind::stream_in),
           "a stream");
    }
    if (node.kind == bsp::ProgramKind::remote_read || node.kind == bsp::ProgramKind::remote_write)
      remote(node, count);
  }

  void remote(const bsp::LoweredNode& node, std::int64_t count) const {
    need(node.buffer.index() < data_.buffers.size(), "a remote buffer");
    const bsp::RemoteBufferData& buffer = data_.buffers[node.buffer.index()];
    std::int64_t rows = node.offsets.empty() ? 1 : 0, all = 0;
    for (const bsp::Run& run : node.offsets) {
      need(lies_in(run.element, run.stride, run.length, variable(run.variable, node.offset_type).count),
           "an offset");
      rows += run.length;
    }
    need(buffer.type == node.type && !__builtin_mul_overflow(rows, buffer.elements, &all) && all == count &&
             superstep::is_integer(node.offset_type),
         "a copy of a remote buffer");
  }

  void segments(const bsp::LoweredNode& node) const {
    for (const bsp::Segment& segment : node.segments) {
      need(lies_in(segment.source_element, segment.source_stride, segment.length,
                   variable(segment.source, node.type).count) &&
               lies_in(segment.destination_element, segment.destination_stride, segment.length,
                       variable(segment.destination, node.type).count),
           "a copy");
    }
    if (node.kind != bsp::ProgramKind::cross_replica_copy) return;
    need(node.replica_map.size() == data_.profile.replicas, "a copy between replicas");
    for (const std::uint32_t replica : node.replica_map) need(replica < data_.profile.replicas, "a replica");
  }

  void profile() const {
    const bsp::CompilationProfile& profile = data_.profile;
    constexpr std::uint32_t most_chips = 4096, most_tiles = 1 << 20;  // chosen: more than any machine has
    need(profile.replicas > 0 && profile.device.ipus > 0 &&
             profile.replicas <= most_chips / profile.device.ipus && profile.device.tiles_per_ipu > 0 &&
             profile.device.tiles_per_ipu <= most_tiles && profile.device.workers > 0,
         "a machine that cannot be");
    for (const bsp::StepProfile& step : profile.steps) {
      need(static_cast<int>(step.kind) <= static_cast<int>(bsp::ProgramKind::count_cycles),
           "a step of no kind");
      for (const std::uint32_t chip : step.chips) need(chip < profile.device.ipus, "a chip");
    }
  }

  const bsp::ExecutableData& data_;
};

}  // namespace

void check_executable(const bsp::ExecutableData& data) { Checker(data).all(); }

}  // namespace poplar::core
