// Compute sets: what the engine runs, and what a superstep costs.
#include <algorithm>
#include <numeric>
#include <set>

#include "superstep/bsp/compile/step_lowering.h"

namespace superstep::bsp {
namespace {

// Workers take vertices in order, each the next when it is free. Vertices that hold the tile come one by one.
class TileSchedule {
 public:
  explicit TileSchedule(std::uint32_t workers) : workers_(workers) {}

  void add(VertexKind kind, std::uint64_t cycles) {
    if (kind == VertexKind::worker)
      *std::min_element(workers_.begin(), workers_.end()) += cycles;
    else
      held_ += cycles;
    busy_ += cycles;
  }
  void copy(std::uint64_t cycles) { held_ += cycles, busy_ += cycles; }

  std::uint64_t cycles() const {
    return workers_.size() * *std::max_element(workers_.begin(), workers_.end()) + held_;
  }
  std::uint64_t busy() const { return busy_; }

 private:
  std::vector<std::uint64_t> workers_;
  std::uint64_t held_ = 0, busy_ = 0;
};

std::uint64_t field_state_bytes(const FieldInfo& info, const FieldConnection& field) {
  switch (info.shape) {
    case FieldShape::state: return size_in_bytes(info.type);
    case FieldShape::scalar: return state_bytes(VectorLayout::one_ptr);
    case FieldShape::vector: return state_bytes(info.layout);
    case FieldShape::vector_list: return 8 + field.tensors.size() * state_bytes(info.layout);
  }
  return 0;
}

// The instance in a tile's memory: code pointer and fields, in words.
std::uint64_t instance_bytes(const VertexData& vertex) {
  std::uint64_t bytes = 4;
  for (std::size_t i = 0; i < vertex.fields.size(); ++i)
    bytes += field_state_bytes(vertex.vertex_class->fields[i], vertex.fields[i]);
  return (bytes + 3) / 4 * 4;
}

PerfEstimate estimate(const VertexData& vertex, const Device& device) {
  if (vertex.estimate) return *vertex.estimate;
  if (vertex.vertex_class->vertex_cycles) return vertex.vertex_class->vertex_cycles(vertex);
  const VertexFields fields = fields_of(vertex);
  return vertex.vertex_class->cycles ? vertex.vertex_class->cycles(fields, device)
                                     : default_estimate(*vertex.vertex_class, fields, device);
}

// How much of a field's vector lies on the vertex's own tile, and in how many pieces.
struct LocalPart {
  std::uint64_t bytes = 0, runs = 0, all_bytes = 0;
};

// A field that lies on the tile, one element after the other: the tile keeps what it has of a variable
// packed, in the order of elements. The tile must have all of the field.
bool is_packed(const Tensor& tensor, Placement& placement) {
  if (tensor.is_contiguous()) return true;
  std::int64_t next = -1;
  VariableId variable;
  for (const Run& run : tensor.view().runs()) {
    if (run.length > 1 && run.stride < 1) return false;
    const TileIndex& index = placement[run.variable];
    const auto address = [&](std::int64_t element) {
      const std::size_t position = index.position_of(element);
      return index.packed_begin(position) + element - index.intervals()[position].begin;
    };
    const std::int64_t begin = address(run.element);
    const std::int64_t last = address(run.element + (run.length - 1) * run.stride);
    if (last - begin != run.length - 1 || (next >= 0 && (run.variable != variable || begin != next)))
      return false;
    variable = run.variable;
    next = last + 1;
  }
  return true;
}

LocalPart local_part(const Tensor& tensor, std::uint32_t tile, Placement& placement) {
  LocalPart part;
  tensor.view().for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
    const std::uint64_t size = placement.element_bytes(variable);
    const auto local = static_cast<std::uint64_t>(placement[variable].count_on(tile, begin, end));
    part.all_bytes += static_cast<std::uint64_t>(end - begin) * size;
    part.bytes += local * size;
    part.runs += local > 0;
  });
  return part;
}

// One superstep as it is put together, tile after tile.
class Superstep {
 public:
  Superstep(Placement& placement, LoweredStep& step, VertexMemory& memory)
      : graph_(placement.graph()),
        placement_(placement),
        step_(step),
        memory_(memory),
        inputs_(placement),
        outputs_(placement) {}

  void tile(std::uint32_t tile, std::span<const VertexId> vertices) {
    TileSchedule schedule(graph_.device.workers);
    StepTile use{tile};
    gathered_.clear();
    local_ = {};
    for (const VertexId id : vertices) vertex(graph_.vertices[id.index()], schedule, use);
    schedule.copy(local_copy_cycles(graph_.device, local_.bytes, local_.runs, local_.element_bytes));
    StepProfile& profile = step_.profile;
    profile.cost.compute = std::max(profile.cost.compute, schedule.cycles());
    profile.compute_cycles_all += schedule.cycles();
    profile.compute_cycles_busy += schedule.busy();
    ++profile.compute_tiles;
    profile.vertices += vertices.size();
    first_ipu_ = std::min(first_ipu_, graph_.device.ipu_of(tile));
    last_ipu_ = std::max(last_ipu_, graph_.device.ipu_of(tile));
    step_.tiles.push_back(use);
  }

  void finish() {
    const Device& device = graph_.device;
    const ExchangeCost in = inputs_.finish(device), out = outputs_.finish(device);
    StepProfile& profile = step_.profile;
    const std::uint32_t computing = last_ipu_ >= first_ipu_ ? last_ipu_ - first_ipu_ + 1 : 1;
    profile.cost.sync = sync_cycles(device, std::max(computing, in.ipus));
    if (out.cycles > 0) profile.cost.sync += sync_cycles(device, std::max(computing, out.ipus));
    for (const ExchangeCost* cost : {&in, &out}) add_exchange(*cost);
    for (const TileTraffic& traffic : in.tiles) {
      StepTile& use = of(traffic.tile);
      use.temporary_bytes += traffic.bytes_in;
      use.fragments += traffic.fragments_in + traffic.fragments_out;
    }
    for (const TileTraffic& traffic : out.tiles)
      of(traffic.tile).fragments += traffic.fragments_in + traffic.fragments_out;
  }

 private:
  void vertex(const VertexData& vertex, TileSchedule& schedule, StepTile& use) {
    const PerfEstimate cost = estimate(vertex, graph_.device);
    schedule.add(vertex.vertex_class->kind, cost.cycles);
    step_.profile.flops += cost.flops;
    step_.profile.cycles_by_vertex[vertex.vertex_class->reported_name()] += cost.cycles;
    remember(vertex, use.tile);
    for (std::size_t i = 0; i < vertex.fields.size(); ++i)
      for (const Tensor& tensor : vertex.fields[i].tensors)
        field(vertex.vertex_class->fields[i].direction, tensor, use);
  }

  void field(FieldDirection direction, const Tensor& tensor, StepTile& use) {
    const LocalPart part = local_part(tensor, use.tile, placement_);
    const bool direct = part.bytes == part.all_bytes && is_packed(tensor, placement_);
    if (direct) return;
    if (direction != FieldDirection::output && first_gather(direction, tensor)) {
      tensor.view().for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
        inputs_.request(variable, begin, end, use.tile);
      });
      local_.add(part, size_in_bytes(tensor.element_type()));
      use.temporary_bytes += part.bytes;
    }
    if (direction != FieldDirection::input) {
      tensor.view().for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
        outputs_.deliver(variable, begin, end, use.tile);
      });
      local_.add(part, size_in_bytes(tensor.element_type()));
      use.temporary_bytes += part.all_bytes;
    }
  }

  // Vertices of a tile that read the same elements share what is received and put in order for them.
  bool first_gather(FieldDirection direction, const Tensor& tensor) {
    if (direction != FieldDirection::input) return true;
    std::vector<std::int64_t> signature;
    for (const Region& region : tensor.view().regions()) {
      signature.insert(signature.end(),
                       {static_cast<std::int64_t>(region.variable.index()), region.view_offset,
                        region.element_offset, static_cast<std::int64_t>(region.loops.size())});
      for (const Loop& loop : region.loops)
        signature.insert(signature.end(), {loop.extent, loop.view_stride, loop.element_stride});
    }
    return gathered_.insert(std::move(signature)).second;
  }

  void remember(const VertexData& vertex, std::uint32_t tile) {
    const VertexClass& type = *vertex.vertex_class;
    const std::string name = type.reported_name();
    ClassUse& all = memory_.classes[name];
    const std::uint64_t bytes = instance_bytes(vertex);
    ++all.instances;
    all.state_bytes += bytes;
    all.default_estimate = all.default_estimate || (!type.cycles && !type.vertex_cycles && !vertex.estimate);
    all.counted = type.counted.has_value();
    memory_.state_bytes[tile] += bytes;
    all.code_bytes = type.code_bytes
                         ? type.code_bytes
                         : static_cast<std::uint64_t>(graph_.device.constants.vertex_code_bytes.value);
    memory_.code[tile][name] = all.code_bytes;
  }

  void add_exchange(const ExchangeCost& cost) {
    StepProfile& profile = step_.profile;
    profile.cost.exchange += cost.cycles;
    profile.cost.global_exchange += cost.link_cycles;
    profile.exchange_cycles_all += cost.tile_cycles;
    profile.exchanged_bytes += cost.bytes;
    profile.link_bytes += cost.link_bytes;
    profile.max_bytes_in = std::max(profile.max_bytes_in, cost.max_in);
    profile.max_bytes_out = std::max(profile.max_bytes_out, cost.max_out);
    profile.max_fragments = std::max(profile.max_fragments, cost.max_fragments);
  }

  StepTile& of(std::uint32_t tile) {
    if (position_.empty())
      for (std::size_t i = 0; i < step_.tiles.size(); ++i) position_[step_.tiles[i].tile] = i;
    const auto [place, added] = position_.emplace(tile, step_.tiles.size());
    if (added) step_.tiles.push_back({tile});
    return step_.tiles[place->second];
  }

  const GraphData& graph_;
  Placement& placement_;
  LoweredStep& step_;
  VertexMemory& memory_;
  ExchangeCounter inputs_, outputs_;
  std::uint32_t first_ipu_ = 0xffffffffu, last_ipu_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> position_;
  // On the tile at hand: one call puts in order what its vertices need so.
  struct LocalMoves {
    std::uint64_t bytes = 0, runs = 0, element_bytes = 8;
    void add(const LocalPart& part, std::uint64_t size) {
      bytes += part.bytes;
      runs += part.runs;
      element_bytes = std::min(element_bytes, size);
    }
  };
  LocalMoves local_;
  std::set<std::vector<std::int64_t>> gathered_;
};

// Data side: fields bound to pieces.
class SetBuilder {
 public:
  SetBuilder(LoweredComputeSet& set) : set_(set) {}

  void vertex(const VertexData& data, const VertexClass& vertex_class) {
    first_piece_ = set_.pieces.size();
    gathered_.clear();
    LoweredVertex vertex{&vertex_class, size(set_.fields), 0, size(set_.values)};
    for (std::size_t i = 0; i < data.fields.size(); ++i) {
      if (vertex_class.fields[i].shape == FieldShape::state) {
        set_.values.push_back(data.fields[i].value);
        continue;
      }
      set_.fields.push_back({static_cast<std::uint16_t>(i), size(set_.pieces),
                             static_cast<std::uint32_t>(data.fields[i].tensors.size())});
      for (const Tensor& tensor : data.fields[i].tensors) piece(tensor.view());
      ++vertex.fields;
    }
    set_.vertices.push_back(vertex);
  }

 private:
  template <class T>
  static std::uint32_t size(const std::vector<T>& list) {
    return static_cast<std::uint32_t>(list.size());
  }

  void piece(const View& view) {
    LoweredPiece piece;
    piece.size = view.count();
    if (view.is_contiguous()) {
      if (view.count() > 0) {
        piece.variable = view.regions()[0].variable;
        piece.element = view.regions()[0].element_offset;
      }
    } else {
      piece.first_block = size(set_.blocks);
      for (const Region& region : view.regions()) add_blocks(region);
      piece.blocks = size(set_.blocks) - piece.first_block;
      piece.same_as = find_same(view);
    }
    set_.pieces.push_back(piece);
  }

  // The number, among the vertex's pieces, of one that shows the same elements.
  std::uint32_t find_same(const View& view) {
    for (const auto& [number, other] : gathered_)
      if (same_elements(*other, view)) return number;
    gathered_.emplace_back(static_cast<std::uint32_t>(set_.pieces.size() - first_piece_), &view);
    return LoweredPiece::none;
  }

  static bool same_elements(const View& a, const View& b) {
    return std::ranges::equal(a.regions(), b.regions(), [](const Region& x, const Region& y) {
      return x.variable == y.variable && x.view_offset == y.view_offset &&
             x.element_offset == y.element_offset && x.loops == y.loops;
    });
  }

  // The innermost loop over places is a run, the one around it the block; those outside are unrolled.
  void add_blocks(const Region& region) {
    RunBlock block{region.variable, region.view_offset, 0, region.element_offset, 0};
    std::span<const Loop> loops = region.loops;
    if (!loops.empty() && loops.back().view_stride == 1) {
      block.length = loops.back().extent;
      block.stride = loops.back().element_stride;
      loops = loops.first(loops.size() - 1);
    }
    if (!loops.empty()) {
      block.count = loops.back().extent;
      block.place_step = loops.back().view_stride;
      block.element_step = loops.back().element_stride;
      loops = loops.first(loops.size() - 1);
    }
    unroll(loops, block);
  }

  void unroll(std::span<const Loop> loops, RunBlock block) {
    if (loops.empty()) return set_.blocks.push_back(block);
    for (std::int64_t i = 0; i < loops[0].extent; ++i) {
      unroll(loops.subspan(1), block);
      block.place += loops[0].view_stride;
      block.element += loops[0].element_stride;
    }
  }

  LoweredComputeSet& set_;
  std::size_t first_piece_ = 0;                                  // of the vertex at hand
  std::vector<std::pair<std::uint32_t, const View*>> gathered_;  // its pieces that are not contiguous
};

}  // namespace

VertexFields fields_of(const VertexData& vertex) {
  VertexFields fields;
  for (std::size_t i = 0; i < vertex.fields.size(); ++i) {
    const FieldInfo& info = vertex.vertex_class->fields[i];
    if (info.shape == FieldShape::state) {
      fields.add_value(info.name, info.type, vertex.fields[i].value);
      continue;
    }
    std::vector<std::int64_t> sizes;
    for (const Tensor& tensor : vertex.fields[i].tensors) sizes.push_back(tensor.num_elements());
    fields.add(info.name, info.type, std::move(sizes));
  }
  return fields;
}

LoweredComputeSet StepLowering::compute_set(ComputeSetId id,
                                            const std::map<std::string, VertexClass, std::less<>>& classes) {
  LoweredComputeSet lowered;
  if (timing_only_) return lowered;
  SetBuilder builder(lowered);
  for (const VertexId vertex_id : graph_.compute_sets[id.index()].vertices) {
    const VertexData& vertex = graph_.vertices[vertex_id.index()];
    builder.vertex(vertex, classes.find(vertex.vertex_class->name)->second);
  }
  return lowered;
}

LoweredStep StepLowering::execute(ComputeSetId id, VertexMemory& memory) {
  const ComputeSetData& set = graph_.compute_sets[id.index()];
  std::vector<VertexId> order = set.vertices;
  const auto tile_of = [this](VertexId vertex) { return *graph_.vertices[vertex.index()].tile; };
  std::stable_sort(order.begin(), order.end(),
                   [&](VertexId a, VertexId b) { return tile_of(a) < tile_of(b); });
  LoweredStep step;
  step.profile.name = set.name;
  step.profile.kind = ProgramKind::execute;
  Superstep superstep(placement_, step, memory);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && tile_of(order[end]) == tile_of(order[begin])) ++end;
    superstep.tile(tile_of(order[begin]), std::span(order).subspan(begin, end - begin));
    begin = end;
  }
  superstep.finish();
  return step;
}

}  // namespace superstep::bsp
