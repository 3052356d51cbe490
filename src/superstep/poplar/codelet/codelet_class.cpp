#include "superstep/poplar/codelet/codelet_class.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "superstep/base/integers.h"
#include "superstep/poplar/codelet/traps.h"
#include "superstep/poplar/core/types.h"

namespace poplar::core {
namespace {

namespace bsp = superstep::bsp;
namespace table = vertex_table;

// How vectors lie in a vertex object: poplar/FieldTypes.hpp.
struct VectorMemory {
  void* elements;
  unsigned count;
};

// In front of every vertex object.
struct Header {
  const CodeletClass* owner;
  bool status;  // what its last run returned, of all workers
};

std::size_t header_bytes(const table::Vertex& entry) {
  return superstep::round_up(sizeof(Header), std::max(entry.alignment, alignof(Header)));
}

std::byte* object_of(void* memory) {
  const Header* header = static_cast<const Header*>(memory);
  return static_cast<std::byte*>(memory) + header_bytes(*header->owner->entry);
}

void construct(void* memory, const void* context) {
  const auto* owner = static_cast<const CodeletClass*>(context);
  const table::Vertex& entry = *owner->entry;
  std::memset(memory, 0, header_bytes(entry) + entry.size);
  new (memory) Header{owner, true};
  entry.prepare(object_of(memory), owner->workers);
}

bool is_list(table::Shape shape) {
  return shape == table::VECTOR_LIST || shape == table::SCALAR_LIST || shape == table::STATE_VECTOR_LIST;
}

// Lists have their pointers in memory of their own, which binding makes.
void destroy(void* memory) {
  const table::Vertex& entry = *static_cast<const Header*>(memory)->owner->entry;
  for (std::size_t i = 0; i < entry.field_count; ++i) {
    if (!is_list(entry.fields[i].shape)) continue;
    VectorMemory list;
    std::memcpy(&list, object_of(memory) + entry.fields[i].offset, sizeof list);
    std::free(list.elements);
  }
}

void compute(void* memory, unsigned worker) {
  Header* header = static_cast<Header*>(memory);
  const table::Vertex& entry = *header->owner->entry;
  const bool said = with_traps(entry.name, entry.compute, object_of(memory), worker);
  header->status = said && (worker == 0 || header->status);
}

bool status(const void* memory) { return static_cast<const Header*>(memory)->status; }

void bind_scalar(void* field, std::span<const bsp::Piece> pieces) {
  std::memcpy(field, &pieces[0].data, sizeof(void*));
}

void bind_vector(void* field, std::span<const bsp::Piece> pieces) {
  const VectorMemory vector{pieces[0].data, static_cast<unsigned>(pieces[0].size)};
  std::memcpy(field, &vector, sizeof vector);
}

// The list's own memory, for so many entries of type T.
template <class T>
T* entries_of(void* field, std::size_t count) {
  VectorMemory list;
  std::memcpy(&list, field, sizeof list);
  if (list.count != count || !list.elements) {
    list.elements = std::realloc(list.elements, std::max<std::size_t>(count, 1) * sizeof(T));
    if (!list.elements) throw std::bad_alloc();
    list.count = static_cast<unsigned>(count);
    std::memcpy(field, &list, sizeof list);
  }
  return static_cast<T*>(list.elements);
}

void bind_vector_list(void* field, std::span<const bsp::Piece> pieces) {
  auto* entries = entries_of<VectorMemory>(field, pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    entries[i] = {pieces[i].data, static_cast<unsigned>(pieces[i].size)};
}

void bind_scalar_list(void* field, std::span<const bsp::Piece> pieces) {
  auto* entries = entries_of<void*>(field, pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) entries[i] = pieces[i].data;
}

bsp::VectorLayout machine_layout(VectorLayout layout) {
  switch (layout) {
    case VectorLayout::SHORT_SPAN: return bsp::VectorLayout::short_span;
    case VectorLayout::ONE_PTR: return bsp::VectorLayout::one_ptr;
    case VectorLayout::SCALED_PTR32: return bsp::VectorLayout::scaled_ptr32;
    case VectorLayout::SCALED_PTR64: return bsp::VectorLayout::scaled_ptr64;
    case VectorLayout::SCALED_PTR128: return bsp::VectorLayout::scaled_ptr128;
    case VectorLayout::COMPACT_PTR: return bsp::VectorLayout::compact_ptr;
    default: return bsp::VectorLayout::span;
  }
}

struct ShapeOnMachine {
  bsp::FieldShape shape;
  void (*bind)(void*, std::span<const bsp::Piece>);
};

ShapeOnMachine machine_shape_of(table::Shape shape) {
  switch (shape) {
    case table::STATE: return {bsp::FieldShape::state, nullptr};
    case table::SCALAR: return {bsp::FieldShape::scalar, bind_scalar};
    case table::STATE_VECTOR_LIST:
    case table::VECTOR_LIST: return {bsp::FieldShape::vector_list, bind_vector_list};
    case table::SCALAR_LIST: return {bsp::FieldShape::vector_list, bind_scalar_list};
    default: return {bsp::FieldShape::vector, bind_vector};
  }
}

bsp::FieldInfo machine_field(const table::Field& field, std::size_t header) {
  const ShapeOnMachine shape = machine_shape_of(field.shape);
  bsp::FieldInfo info;
  info.name = field.name;
  info.shape = shape.shape;
  info.bind = shape.bind;
  info.direction = field.direction == table::INPUT    ? bsp::FieldDirection::input
                   : field.direction == table::OUTPUT ? bsp::FieldDirection::output
                                                      : bsp::FieldDirection::in_out;
  info.type = machine_type(Type(field.type));
  info.layout = machine_layout(field.layout);
  info.minimum_alignment = field.alignment;
  info.interleaved = field.interleaved;
  info.offset = header + field.offset;
  return info;
}

// What a constructor has left in the vertex's own numbers stays there until a graph says otherwise.
void read_initial_values(bsp::VertexClass& description) {
  const auto alignment = static_cast<std::align_val_t>(description.object_alignment);
  const auto free = [&](std::byte* memory) { ::operator delete(memory, alignment); };
  const std::unique_ptr<std::byte, decltype(free)> memory(
      static_cast<std::byte*>(::operator new(description.object_bytes, alignment)), free);
  construct(memory.get(), description.context.get());
  for (bsp::FieldInfo& field : description.fields) {
    if (field.shape != bsp::FieldShape::state) continue;
    superstep::dispatch(field.type, [&]<class T>() {
      T value;
      std::memcpy(&value, memory.get() + field.offset, sizeof value);
      if constexpr (std::is_same_v<T, superstep::f16> || std::is_same_v<T, superstep::bf16>)
        field.initial = static_cast<float>(value);
      else
        field.initial = static_cast<double>(value);
    });
  }
}

}  // namespace

const vertex_table::Field* CodeletClass::find(std::string_view field) const {
  for (std::size_t i = 0; i < entry->field_count; ++i)
    if (field == entry->fields[i].name) return &entry->fields[i];
  return nullptr;
}

bsp::VertexClass machine_class(std::shared_ptr<const CodeletClass> codelet) {
  const table::Vertex& entry = *codelet->entry;
  bsp::VertexClass result;
  result.name = entry.name;
  result.kind = entry.kind == table::MULTI        ? bsp::VertexKind::multi
                : entry.kind == table::SUPERVISOR ? bsp::VertexKind::supervisor
                                                  : bsp::VertexKind::worker;
  const std::size_t header = header_bytes(entry);
  for (std::size_t i = 0; i < entry.field_count; ++i)
    result.fields.push_back(machine_field(entry.fields[i], header));
  result.object_bytes = header + entry.size;
  result.object_alignment = std::max(entry.alignment, alignof(Header));
  result.construct = construct;
  result.destroy = destroy;
  result.compute = compute;
  result.status = status;
  if (const table::Mix& mix = *entry.mix; mix.fixed > 0) result.counted = {mix.fixed, mix.outer, mix.element};
  result.context = std::move(codelet);
  read_initial_values(result);
  return result;
}

}  // namespace poplar::core
