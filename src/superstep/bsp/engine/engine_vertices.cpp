#include "superstep/bsp/engine/engine_vertices.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::bsp {
namespace {

constexpr std::size_t alignment = 64;

}  // namespace

void VertexInstances::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, std::align_val_t(alignment));
}

VertexInstances::VertexInstances(const LoweredComputeSet& set, ReplicaMemory& memory, std::uint32_t workers)
    : set_(set), memory_(memory), workers_(workers) {
  std::size_t bytes = 0;
  for (const LoweredVertex& vertex : set.vertices) {
    bytes = round_up<std::size_t>(bytes, vertex.vertex_class->object_alignment);
    offsets_.push_back(bytes);
    bytes += vertex.vertex_class->object_bytes;
  }
  storage_.reset(
      static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t(alignment))));
  gathers_.resize(set.vertices.size());
  for (std::size_t i = 0; i < set.vertices.size(); ++i) {
    set.vertices[i].vertex_class->construct(object(i), set.vertices[i].vertex_class->context.get());
    set_state(i);
    bind_direct(i);
  }
}

VertexInstances::~VertexInstances() {
  for (std::size_t i = 0; i < set_.vertices.size(); ++i) set_.vertices[i].vertex_class->destroy(object(i));
}

void VertexInstances::set_state(std::size_t index) {
  const LoweredVertex& vertex = set_.vertices[index];
  std::uint32_t value = vertex.first_value;
  for (const FieldInfo& field : vertex.vertex_class->fields) {
    if (field.shape != FieldShape::state) continue;
    std::byte* place = static_cast<std::byte*>(object(index)) + field.offset;
    const double number = set_.values[value++];
    dispatch(field.type, [&]<class T>() {
      T converted;
      if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
        converted = T(static_cast<float>(number));
      else
        converted = static_cast<T>(number);
      std::memcpy(place, &converted, sizeof(T));
    });
  }
}

std::size_t VertexInstances::element_bytes(const LoweredVertex& vertex, const LoweredField& field) const {
  return size_in_bytes(vertex.vertex_class->fields[field.field].type);
}

void VertexInstances::bind_direct(std::size_t index) {
  const LoweredVertex& vertex = set_.vertices[index];
  std::vector<Piece> pieces;
  for (std::uint32_t f = 0; f < vertex.fields; ++f) {
    const LoweredField& field = set_.fields[vertex.first_field + f];
    const std::size_t size = element_bytes(vertex, field);
    pieces.clear();
    for (std::uint32_t p = 0; p < field.pieces; ++p) {
      const LoweredPiece& piece = set_.pieces[field.first_piece + p];
      if (piece.blocks > 0) gathers_[index] = true;
      std::byte* data = piece.variable.valid() && piece.blocks == 0
                            ? memory_.bytes(piece.variable) + static_cast<std::size_t>(piece.element) * size
                            : nullptr;
      pieces.push_back({data, piece.size});
    }
    const FieldInfo& info = vertex.vertex_class->fields[field.field];
    info.bind(static_cast<std::byte*>(object(index)) + info.offset, pieces);
  }
}

void VertexInstances::compute(std::size_t index) {
  const VertexClass& vertex_class = *set_.vertices[index].vertex_class;
  const std::uint32_t calls = vertex_class.kind == VertexKind::multi ? workers_ : 1;
  for (std::uint32_t worker = 0; worker < calls; ++worker) vertex_class.compute(object(index), worker);
}

// Gives every gathered piece of a vertex its place in the scratch memory. Pieces of the same elements share
// one.
void VertexInstances::lay_out(const LoweredVertex& vertex, Scratch& scratch) const {
  scratch.offsets.clear();
  std::size_t used = 0;
  for (std::uint32_t f = 0; f < vertex.fields; ++f) {
    const LoweredField& field = set_.fields[vertex.first_field + f];
    const std::size_t size = element_bytes(vertex, field);
    for (std::uint32_t p = 0; p < field.pieces; ++p) {
      const LoweredPiece& piece = set_.pieces[field.first_piece + p];
      const bool shares = piece.same_as != LoweredPiece::none;
      scratch.offsets.push_back(shares ? scratch.offsets[piece.same_as] : used);
      if (piece.blocks > 0 && !shares)
        used += round_up<std::size_t>(static_cast<std::size_t>(piece.size) * size, 16);
    }
  }
  if (scratch.bytes.size() < used) scratch.bytes.resize(used);
}

// Pieces that are not contiguous live in a buffer while the vertex runs. Outputs are gathered too: a vertex
// may leave some of its elements alone.
void VertexInstances::run_vertex(std::size_t index, Scratch& scratch) {
  if (!gathers_[index]) return compute(index);
  const LoweredVertex& vertex = set_.vertices[index];
  const std::span<const LoweredField> fields(set_.fields.data() + vertex.first_field, vertex.fields);
  lay_out(vertex, scratch);
  const auto for_each_piece = [&](const LoweredField& field, std::size_t& number, auto&& f) {
    for (std::uint32_t p = 0; p < field.pieces; ++p, ++number)
      f(set_.pieces[field.first_piece + p], scratch.bytes.data() + scratch.offsets[number]);
  };
  const auto blocks_of = [&](const LoweredPiece& piece) {
    return std::span(set_.blocks).subspan(piece.first_block, piece.blocks);
  };
  std::size_t number = 0;
  for (const LoweredField& field : fields) {
    const std::size_t size = element_bytes(vertex, field);
    scratch.pieces.clear();
    for_each_piece(field, number, [&](const LoweredPiece& piece, std::byte* buffer) {
      std::byte* data = nullptr;
      if (piece.blocks > 0) {
        data = buffer;
        if (piece.same_as == LoweredPiece::none) memory_.gather(blocks_of(piece), size, buffer);
      } else if (piece.variable.valid()) {
        data = memory_.bytes(piece.variable) + static_cast<std::size_t>(piece.element) * size;
      }
      scratch.pieces.push_back({data, piece.size});
    });
    const FieldInfo& info = vertex.vertex_class->fields[field.field];
    info.bind(static_cast<std::byte*>(object(index)) + info.offset, scratch.pieces);
  }
  compute(index);
  number = 0;
  for (const LoweredField& field : fields) {
    const bool written = vertex.vertex_class->fields[field.field].direction != FieldDirection::input;
    const std::size_t size = element_bytes(vertex, field);
    for_each_piece(field, number, [&](const LoweredPiece& piece, std::byte* buffer) {
      if (written && piece.blocks > 0) memory_.scatter(blocks_of(piece), size, buffer);
    });
  }
}

void VertexInstances::run(ThreadPool& pool) {
  const auto count = static_cast<std::int64_t>(set_.vertices.size());
  const std::int64_t chunk = std::max<std::int64_t>(1, count / (8 * pool.threads()));
  std::vector<Scratch> scratch(static_cast<std::size_t>(pool.threads()));
  pool.parallel_for((count + chunk - 1) / chunk, [&](std::int64_t item, int worker) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while executing");
    for (std::int64_t i = item * chunk; i < std::min(count, (item + 1) * chunk); ++i)
      run_vertex(static_cast<std::size_t>(i), scratch[static_cast<std::size_t>(worker)]);
  });
}

bool VertexInstances::status() const {
  for (std::size_t i = 0; i < set_.vertices.size(); ++i) {
    const VertexClass& vertex_class = *set_.vertices[i].vertex_class;
    if (vertex_class.status && !vertex_class.status(object(i))) return false;
  }
  return true;
}

}  // namespace superstep::bsp
