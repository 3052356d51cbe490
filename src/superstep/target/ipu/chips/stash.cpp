#include "superstep/target/ipu/chips/stash.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace superstep::target::ipu {
namespace {

struct StashForm {
  std::size_t element_bytes = 4, depth = 1;
};

// A ring of `depth` values behind one another; `turn` is the slot that is next.
struct StashVertex {
  const StashForm* form;
  bsp::Piece ring, value, turn;
};

void bind_piece(void* field, std::span<const bsp::Piece> pieces) {
  *static_cast<bsp::Piece*>(field) = pieces[0];
}

template <bool Store>
void move(void* object, unsigned worker) {
  if (worker != 0) return;
  const StashVertex& vertex = *static_cast<const StashVertex*>(object);
  auto& turn = *static_cast<std::uint32_t*>(vertex.turn.data);
  const std::size_t bytes = static_cast<std::size_t>(vertex.value.size) * vertex.form->element_bytes;
  auto* slot = static_cast<std::byte*>(vertex.ring.data) + turn * bytes;
  std::memcpy(Store ? slot : vertex.value.data, Store ? vertex.value.data : slot, bytes);
  turn = static_cast<std::uint32_t>((turn + 1) % vertex.form->depth);
}

bsp::VertexClass stash_vertex(std::string name, bsp::Type type, std::size_t depth, bool store) {
  bsp::VertexClass vertex;
  vertex.name = std::move(name);
  vertex.kind = bsp::VertexKind::multi;
  const auto add = [&](const char* field, bsp::FieldDirection direction, bsp::Type element,
                       std::size_t offset) {
    bsp::FieldInfo info;
    info.name = field;
    info.direction = direction;
    info.type = element;
    info.offset = offset;
    info.bind = bind_piece;
    vertex.fields.push_back(std::move(info));
  };
  using enum bsp::FieldDirection;
  add("ring", store ? in_out : input, type, offsetof(StashVertex, ring));
  add("value", store ? input : output, type, offsetof(StashVertex, value));
  add("turn", in_out, bsp::Type::u32, offsetof(StashVertex, turn));
  vertex.object_bytes = sizeof(StashVertex);
  vertex.object_alignment = alignof(StashVertex);
  vertex.construct = [](void* memory, const void* context) {
    new (memory) StashVertex{static_cast<const StashForm*>(context), {}, {}, {}};
  };
  vertex.destroy = [](void* memory) { static_cast<StashVertex*>(memory)->~StashVertex(); };
  vertex.compute = store ? move<true> : move<false>;
  vertex.context = std::make_shared<StashForm>(StashForm{size_in_bytes(type), depth});
  return vertex;
}

}  // namespace

Stash::Stash(bsp::Graph& device, const machine::ipu::Hardware& hardware, std::size_t depth,
             const std::string& name)
    : device_(device),
      hardware_(hardware),
      depth_(depth),
      name_(name),
      store_(device.add_compute_set(name + "/store")),
      restore_(device.add_compute_set(name + "/restore")) {}

const std::string& Stash::codelet(bsp::Type type, bool store) {
  const auto [place, added] = codelets_.emplace(std::pair(type, store), std::string());
  if (!added) return place->second;
  place->second = fmt::format("Stash/{}<{}>#{}", store ? "store" : "restore", bsp::device_name(type), name_);
  device_.add_codelets({stash_vertex(place->second, type, depth_, store)});
  return place->second;
}

void Stash::add(const bsp::Tensor& value, const std::string& name) {
  const bsp::Type type = value.element_type();
  const auto depth = static_cast<std::int64_t>(depth_);
  const bsp::TileMapping mapping = device_.tile_mapping(value);
  std::int64_t tiles = 0, begin = 0;
  for (const auto& places : mapping) tiles += !places.empty();
  // On every tile the slots lie behind one another.
  const bsp::Tensor rings = device_.add_variable(type, Shape{depth * value.num_elements()}, name + "/stash");
  device_.set_initial_value(rings, 0.0);
  const bsp::Tensor turns = device_.add_variable(bsp::Type::u32, Shape{2, tiles}, name + "/stash/turn");
  device_.set_initial_value(turns, 0.0);
  std::int64_t number = 0;
  for (std::size_t t = 0; t < mapping.size(); ++t) {
    if (mapping[t].empty()) continue;
    const auto tile = static_cast<std::uint32_t>(t);
    const bsp::Tensor here = bsp::concat(value.flatten().slices(mapping[t]));
    const bsp::Tensor ring = rings.slice(begin, begin + depth * here.num_elements());
    begin += ring.num_elements();
    device_.set_tile_mapping(ring, tile);
    // A pointer and a size each, the slot's address, then as fast as memory copies.
    const std::uint64_t cycles = 60 + static_cast<std::uint64_t>(here.num_elements()) * size_in_bytes(type) /
                                          static_cast<std::uint64_t>(hardware_.memcpy_rate);
    for (const bool store : {true, false}) {
      const bsp::Tensor turn = turns[store ? 0 : 1].slice(number, number + 1);
      device_.set_tile_mapping(turn, tile);
      const bsp::VertexRef vertex = device_.add_vertex(store ? store_ : restore_, codelet(type, store),
                                                       {{"ring", ring}, {"value", here}, {"turn", turn}});
      device_.set_tile_mapping(vertex, tile);
      device_.set_perf_estimate(vertex, cycles);
    }
    ++number;
  }
}

bsp::Execute Stash::store() const { return bsp::Execute(store_, name_ + "/store"); }
bsp::Execute Stash::restore() const { return bsp::Execute(restore_, name_ + "/restore"); }

}  // namespace superstep::target::ipu
