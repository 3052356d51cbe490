#include "superstep/openmp/lower.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <set>

#include "superstep/openmp/body_vertex.h"
#include "superstep/openmp/reduce.h"

namespace superstep::openmp {
namespace {

// Partial results that one vertex combines, and the arrays of more elements than a tile should have around
// its cell: a padded cell of more than four times the cell is received apart instead. Both chosen.
constexpr std::size_t combined_at_once = 32;
constexpr std::int64_t padding_limit = 4, padding_free = 64;

// A launch with its arrays: the same vertices each time it runs.
using Binding = std::pair<int, std::vector<DeviceArray*>>;

// What a launch does with one of its arrays: on the array's own boxes, or on boxes received for it.
struct Operand {
  bool used = false, direct = false;
  int signature = -1;                // of the boxes that must be there before the body runs
  std::vector<bsp::Tensor> tensors;  // a part
  std::vector<Box> boxes;            // what they hold
  std::optional<bsp::Program> refresh, write_back;
};

struct Bound {
  std::vector<Operand> operands;
  std::optional<bsp::Program> compute;  // and reductions
};

class Lowering {
 public:
  Lowering(const bsp::Device& device, std::span<const Command> commands,
           std::span<const std::shared_ptr<const Plan>> plans, const LowerOptions& options)
      : graph_(device), device_(device), commands_(commands), plans_(plans), options_(options) {}

  LoweredQueue run() {
    make_storage();
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      const Command& command = commands_[i];
      if (command.kind == CommandKind::launch)
        add_launch(i);
      else
        add_transfer(i);
    }
    return finish();
  }

 private:
  void make_storage();
  void widen(const Command& command, std::map<DeviceArray*, Halo>& halos) const;
  bool fits_directly(const Plan& plan, std::size_t slot, const Storage& storage) const;
  int signature_of(const DeviceArray* array, bool direct, const Plan& plan, const std::vector<Box>& boxes);
  Operand make_operand(const Plan& plan, std::size_t slot, const Storage& storage);
  void make_direct(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand);
  void make_received(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand);
  void make_gathered(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand);
  const std::vector<bsp::Tensor>& received(const Plan& plan, std::size_t slot, int signature,
                                           const std::vector<std::int64_t>& sizes);
  void withhold(std::vector<bsp::Tensor>& from, std::vector<bsp::Tensor>& to) const;
  Bound& bound(const Command& command);
  bsp::Program make_compute(const Binding& binding, const std::vector<Operand>& operands, bool scalars_vary);
  std::vector<bsp::Tensor> add_partials(const Plan& plan, std::size_t reduction);
  struct Slice;
  static std::vector<Slice> slices_of(Slice whole, std::size_t element_bytes);
  void combine_groups(Operator op, ElementType type, std::size_t group, const std::string& what,
                      std::vector<Slice>& slices, bsp::Sequence& program);
  void add_combining(const Binding& binding, std::size_t reduction, const bsp::Tensor& partials,
                     bsp::Sequence& program);
  const bsp::Tensor& scalars_of(const Plan& plan, int number);
  void send_scalars(std::size_t index);
  void add_launch(std::size_t index);
  void add_transfer(std::size_t index);
  void add_step(const std::string& key, const bsp::Program& program);
  bsp::VertexRef combining_vertex(bsp::ComputeSet set, Operator op, ElementType type, bool onto,
                                  const bsp::Tensor& in, const bsp::Tensor& out, std::uint32_t tile);
  LoweredQueue finish();

  std::string name(const Plan& plan, const std::string& what) const {
    return fmt::format("{} {}", to_string(plan.region.place), what);
  }

  bsp::Graph graph_;
  bsp::Device device_;
  std::span<const Command> commands_;
  std::span<const std::shared_ptr<const Plan>> plans_;
  LowerOptions options_;
  std::map<DeviceArray*, std::unique_ptr<Storage>> storage_;
  std::map<Binding, Bound> bound_;
  std::map<std::tuple<const DeviceArray*, bool, std::vector<std::uint32_t>, std::vector<Box>>, int>
      signatures_;
  std::map<int, std::vector<bsp::Tensor>> received_;   // by signature
  std::map<int, bsp::Tensor> scalars_;                 // by plan, those that vary
  std::map<int, bsp::Program> sends_;                  // by plan: how they come from the host
  std::map<const DeviceArray*, std::set<int>> fresh_;  // signatures whose boxes hold the array's values
  std::map<std::string, int> step_numbers_;
  std::vector<bsp::Program> steps_;
  std::vector<int> row_;
  LoweredQueue result_;
};

std::vector<Box> needed(const ArrayUse& use) { return use.writes ? use.reached : use.read; }

// The tiles' boxes of an array reach as far as its direct readers do, unless that is too far.
void Lowering::widen(const Command& command, std::map<DeviceArray*, Halo>& halos) const {
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  for (std::size_t slot = 0; slot < command.arrays.size(); ++slot) {
    DeviceArray* array = command.arrays[slot];
    if (plan.region.arrays[slot].extents != array->placement->extents || plan.region.gathers(slot)) continue;
    std::map<std::uint32_t, Box> cells;
    std::int64_t largest = 0;
    array->placement->cells.for_each([&](std::uint32_t tile, const Box& cell) {
      cells[tile] = cell;
      largest = std::max(largest, cell.volume());
    });
    Halo halo = halos[array];
    std::int64_t padded = 0;
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
      const Box& reached = plan.uses[slot].reached[i];
      if (reached.empty()) continue;
      const auto cell = cells.find(plan.parts[i].tile);
      if (cell == cells.end() || cell->second.empty()) return;
      for (std::size_t axis = 0; axis < reached.rank(); ++axis) {
        halo.low[axis] = std::max(halo.low[axis], cell->second.begin[axis] - reached.begin[axis]);
        halo.high[axis] = std::max(halo.high[axis], reached.end[axis] - cell->second.end[axis]);
      }
    }
    for (const auto& [tile, cell] : cells) {
      std::int64_t volume = 1;
      for (std::size_t axis = 0; axis < cell.rank(); ++axis)
        volume *=
            std::min(array->placement->extents[axis], cell.extent(axis) + halo.low[axis] + halo.high[axis]);
      padded = std::max(padded, volume);
    }
    if (padded <= padding_limit * largest + padding_free) halos[array] = halo;
  }
}

void Lowering::make_storage() {
  std::map<DeviceArray*, Halo> halos;
  std::vector<DeviceArray*> order;
  for (const Command& command : commands_)
    for (DeviceArray* array : command.arrays)
      if (!halos.contains(array)) {
        const std::vector<std::int64_t> none(array->placement->extents.size(), 0);
        halos[array] = {none, none};
        order.push_back(array);
      }
  std::set<Binding> seen;
  for (const Command& command : commands_)
    if (command.kind == CommandKind::launch && seen.insert({command.plan, command.arrays}).second)
      widen(command, halos);
  for (DeviceArray* array : order) {
    storage_[array] = std::make_unique<Storage>(graph_, *array, halos[array]);
    const Storage& storage = *storage_[array];
    LoweredQueue::Image image{array, fmt::format("image {}", array->number), storage.owned(0, array->count)};
    const bsp::Tensor tensor = storage.tensor(image.boxes);
    graph_.create_host_write(image.handle, tensor);
    graph_.create_host_read(image.handle, tensor);
    result_.images.push_back(std::move(image));
  }
}

bool Lowering::fits_directly(const Plan& plan, std::size_t slot, const Storage& storage) const {
  if (plan.region.arrays[slot].extents != storage.extents()) return false;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const int cell = storage.cell_of(plan.parts[i].tile);
    if (cell < 0) return false;
    const auto number = static_cast<std::size_t>(cell);
    if (storage.own(number).empty()) return false;
    if (!storage.padded(number).contains(plan.uses[slot].reached[i])) return false;
    if (!storage.own(number).contains(plan.uses[slot].written[i])) return false;
  }
  return true;
}

int Lowering::signature_of(const DeviceArray* array, bool direct, const Plan& plan,
                           const std::vector<Box>& boxes) {
  std::vector<std::uint32_t> tiles;
  for (const PlanPart& part : plan.parts) tiles.push_back(part.tile);
  const auto next = static_cast<int>(signatures_.size());
  return signatures_.try_emplace({array, direct, std::move(tiles), boxes}, next).first->second;
}

bsp::Program copy(std::vector<bsp::Tensor> from, std::vector<bsp::Tensor> to, const std::string& name) {
  return bsp::Copy(bsp::concat(from), bsp::concat(to), name);
}

void Lowering::withhold(std::vector<bsp::Tensor>& from, std::vector<bsp::Tensor>& to) const {
  if (!options_.withhold_halo_element || from.empty()) return;
  // Its ends may be corners of a box, which nobody reads.
  const std::int64_t middle = from.back().num_elements() / 2, end = from.back().num_elements();
  for (std::vector<bsp::Tensor>* list : {&from, &to})
    list->back() = bsp::concat(list->back().slice(0, middle), list->back().slice(middle + 1, end));
}

// A part's own memory for elements that it receives, flat; the same for the same boxes.
const std::vector<bsp::Tensor>& Lowering::received(const Plan& plan, std::size_t slot, int signature,
                                                   const std::vector<std::int64_t>& sizes) {
  std::vector<bsp::Tensor>& tensors = received_[signature];
  if (!tensors.empty()) return tensors;
  const RegionArray& array = plan.region.arrays[slot];
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const bsp::Tensor variable =
      graph_.add_variable(stored_type(array.type), {total}, name(plan, "copy of " + array.name));
  std::int64_t first = 0;
  bsp::TileMapping mapping(device_.num_tiles());
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const std::int64_t end = first + sizes[i];
    if (end > first) mapping[plan.parts[i].tile].push_back({first, end});
    tensors.push_back(variable.slice(first, end));
    first = end;
  }
  graph_.set_tile_mapping(variable, mapping);
  return tensors;
}

void Lowering::make_direct(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand) {
  const std::vector<Box> reads = needed(plan.uses[slot]);
  std::vector<bsp::Tensor> from, to;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const int cell = storage.cell_of(plan.parts[i].tile);
    const auto number = static_cast<std::size_t>(cell);
    operand.tensors.push_back(storage.box(number).flatten());
    operand.boxes.push_back(storage.padded(number));
    if (reads[i].empty()) continue;
    storage.pair_up(reads[i], storage.extents(), storage.slice(number, reads[i]), cell, from, to);
  }
  withhold(from, to);
  if (!from.empty()) operand.refresh = copy(from, to, name(plan, "halo of " + plan.region.arrays[slot].name));
}

void Lowering::make_received(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand) {
  const ArrayUse& use = plan.uses[slot];
  const RegionArray& array = plan.region.arrays[slot];
  operand.boxes = use.reached;
  std::vector<std::int64_t> sizes;
  for (const Box& box : operand.boxes) sizes.push_back(box.volume());
  const std::vector<bsp::Tensor>& tensors = received(plan, slot, operand.signature, sizes);
  operand.tensors = tensors;
  std::vector<bsp::Tensor> from, to, results, owned;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const Box& box = operand.boxes[i];
    std::vector<std::int64_t> extents, begin, end;
    for (std::size_t axis = 0; axis < box.rank(); ++axis) extents.push_back(box.extent(axis));
    const bsp::Tensor local = tensors[i].reshape(Shape(extents));
    if (!box.empty()) storage.pair_up(box, array.extents, local, -1, from, to);
    const Box& written = use.written[i];
    if (written.empty()) continue;
    for (std::size_t axis = 0; axis < box.rank(); ++axis) {
      begin.push_back(written.begin[axis] - box.begin[axis]);
      end.push_back(written.end[axis] - box.begin[axis]);
    }
    storage.pair_up(written, array.extents, local.slice(begin, end), -1, owned, results);
  }
  if (!from.empty()) operand.refresh = copy(from, to, name(plan, "copy of " + array.name));
  if (!owned.empty()) operand.write_back = copy(results, owned, name(plan, "results to " + array.name));
}

// The runs of elements that each part asks for, one after the other. Its body finds them by their numbers in
// the whole array.
void Lowering::make_gathered(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand) {
  const RegionArray& array = plan.region.arrays[slot];
  std::vector<Box> runs;
  std::vector<std::int64_t> sizes;
  for (const PartGathers& part : plan.gathers) {
    const ElementRuns& elements = part.elements[slot];
    runs.push_back({{-1}, {-1}});  // so that the parts' runs are told apart
    for (std::size_t run = 0; run < elements.first.size(); ++run)
      runs.push_back({{elements.first[run]}, {elements.first[run] + elements.length(run)}});
    sizes.push_back(elements.count);
  }
  operand.signature = signature_of(&storage.array(), false, plan, runs);
  operand.boxes.assign(plan.parts.size(), whole(array.extents));
  operand.tensors = received(plan, slot, operand.signature, sizes);
  const std::vector<std::int64_t> flat{array.count()};
  std::vector<bsp::Tensor> from, to;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const ElementRuns& elements = plan.gathers[i].elements[slot];
    for (std::size_t run = 0; run < elements.first.size(); ++run) {
      const std::int64_t first = elements.first[run], place = elements.local[run],
                         length = elements.length(run);
      storage.pair_up({{first}, {first + length}}, flat, operand.tensors[i].slice(place, place + length), -1,
                      from, to);
    }
  }
  withhold(from, to);
  if (!from.empty()) operand.refresh = copy(from, to, name(plan, "gathered " + array.name));
}

Operand Lowering::make_operand(const Plan& plan, std::size_t slot, const Storage& storage) {
  Operand operand;
  const ArrayUse& use = plan.uses[slot];
  operand.used = use.reads || use.writes;
  if (!operand.used) return operand;
  if (plan.region.gathers(slot)) {
    make_gathered(plan, slot, storage, operand);
    return operand;
  }
  operand.direct = fits_directly(plan, slot, storage);
  operand.signature =
      signature_of(&storage.array(), operand.direct, plan, operand.direct ? needed(use) : use.reached);
  if (operand.direct)
    make_direct(plan, slot, storage, operand);
  else
    make_received(plan, slot, storage, operand);
  return operand;
}

bsp::VertexRef Lowering::combining_vertex(bsp::ComputeSet set, Operator op, ElementType type, bool onto,
                                          const bsp::Tensor& in, const bsp::Tensor& out, std::uint32_t tile) {
  const bsp::VertexClass description = combining_class(op, type, onto);
  if (!graph_.has_codelet(description.name)) graph_.add_codelets({description});
  const bsp::VertexRef vertex = graph_.add_vertex(set, description.name, {{"in", in}, {"out", out}});
  graph_.set_tile_mapping(vertex, tile);
  return vertex;
}

// Room for a result of every worker of every part.
std::vector<bsp::Tensor> Lowering::add_partials(const Plan& plan, std::size_t reduction) {
  const RegionArray& array =
      plan.region.arrays[static_cast<std::size_t>(plan.region.reductions[reduction].array)];
  const std::int64_t size = array.count() * device_.workers;
  const auto parts = static_cast<std::int64_t>(plan.parts.size());
  const bsp::Tensor variable =
      graph_.add_variable(stored_type(array.type), {parts, size}, name(plan, "partial " + array.name));
  std::vector<bsp::Tensor> result;
  for (std::int64_t i = 0; i < parts; ++i) {
    graph_.set_tile_mapping(variable[i], plan.parts[static_cast<std::size_t>(i)].tile);
    result.push_back(variable[i]);
  }
  return result;
}

// Elements [begin, end) of what is combined: one tensor a part, or a group of parts, and its tile.
struct Lowering::Slice {
  std::int64_t begin = 0, end = 0;
  std::vector<bsp::Tensor> values;
  std::vector<std::uint32_t> tiles;
};

// Long results are combined in slices, each on another tile of a group, so that no tile has to hold the whole
// of all its neighbours.
std::vector<Lowering::Slice> Lowering::slices_of(Slice whole, std::size_t element_bytes) {
  constexpr std::int64_t long_bytes = 1024;  // chosen: 32 of them are a twentieth of a tile's memory
  const std::int64_t count = whole.end;
  if (count * static_cast<std::int64_t>(element_bytes) <= long_bytes || whole.values.size() == 1)
    return {std::move(whole)};
  const auto wanted = static_cast<std::int64_t>(std::min(combined_at_once, whole.values.size()));
  const std::int64_t length = (count + wanted - 1) / wanted;
  std::vector<Slice> slices;
  for (std::int64_t begin = 0; begin < count; begin += length) {
    Slice slice{begin, std::min(count, begin + length), {}, whole.tiles};
    for (const bsp::Tensor& value : whole.values) slice.values.push_back(value.slice(slice.begin, slice.end));
    slices.push_back(std::move(slice));
  }
  return slices;
}

// Neighbours, `group` at a time; the slices of a group go to its tiles in turn.
void Lowering::combine_groups(Operator op, ElementType type, std::size_t group, const std::string& what,
                              std::vector<Slice>& slices, bsp::Sequence& program) {
  const bsp::ComputeSet set = graph_.add_compute_set(what);
  for (std::size_t s = 0; s < slices.size(); ++s) {
    Slice& slice = slices[s];
    const std::size_t groups = (slice.values.size() + group - 1) / group;
    const bsp::Tensor sums = graph_.add_variable(
        stored_type(type), {static_cast<std::int64_t>(groups), slice.end - slice.begin}, what);
    std::vector<bsp::Tensor> next;
    std::vector<std::uint32_t> next_tiles;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t first = g * group, end = std::min(slice.values.size(), first + group);
      const std::vector<bsp::Tensor> in(slice.values.begin() + static_cast<std::ptrdiff_t>(first),
                                        slice.values.begin() + static_cast<std::ptrdiff_t>(end));
      const std::uint32_t tile = slice.tiles[first + s % (end - first)];
      const bsp::Tensor out = sums[static_cast<std::int64_t>(g)];
      graph_.set_tile_mapping(out, tile);
      combining_vertex(set, op, type, false, bsp::concat(in), out, tile);
      next.push_back(out);
      next_tiles.push_back(tile);
    }
    slice.values = std::move(next);
    slice.tiles = std::move(next_tiles);
  }
  program.add(bsp::Execute(set, what));
}

// The workers' results on each tile, then groups of neighbours, then onto the array: always in this order.
void Lowering::add_combining(const Binding& binding, std::size_t number, const bsp::Tensor& partials,
                             bsp::Sequence& program) {
  const Plan& plan = *plans_[static_cast<std::size_t>(binding.first)];
  const Reduction& reduction = plan.region.reductions[number];
  const auto slot = static_cast<std::size_t>(reduction.array);
  const RegionArray& array = plan.region.arrays[slot];
  const std::string what = name(plan, "reduction of " + array.name);
  std::vector<Slice> slices(1);
  slices[0].end = array.count();
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    slices[0].values.push_back(partials[static_cast<std::int64_t>(i)]);
    slices[0].tiles.push_back(plan.parts[i].tile);
  }
  combine_groups(reduction.op, array.type, 1, what, slices, program);  // first each tile's own
  slices = slices_of(std::move(slices[0]), size_in_bytes(array.type));
  while (slices[0].values.size() > 1)
    combine_groups(reduction.op, array.type, combined_at_once, what, slices, program);
  std::vector<bsp::Tensor> results;
  for (const Slice& slice : slices) results.push_back(slice.values[0]);
  const Storage& storage = *storage_.at(binding.second[slot]);
  const auto owned = storage.owned(0, array.count());
  const bsp::ComputeSet set = graph_.add_compute_set(what);
  // The queue has seen to it that the array has one cell: its owned boxes are in the order of its elements.
  combining_vertex(set, reduction.op, array.type, true, bsp::concat(results), storage.tensor(owned),
                   plan.parts[0].tile);
  program.add(bsp::Execute(set, what));
}

// The scalars of a plan on each of its tiles.
const bsp::Tensor& Lowering::scalars_of(const Plan& plan, int number) {
  const auto [place, added] = scalars_.try_emplace(number);
  if (!added) return place->second;
  const bsp::Tensor tensor = graph_.add_variable(
      ElementType::u64, {static_cast<std::int64_t>(plan.parts.size()), scalar_words(plan.region)},
      name(plan, "scalars"));
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    graph_.set_tile_mapping(tensor[static_cast<std::int64_t>(i)], plan.parts[i].tile);
  return place->second = tensor;
}

// From the host to the first tile, and from there to all.
void Lowering::send_scalars(std::size_t index) {
  const Command& command = commands_[index];
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  const std::int64_t words = scalar_words(plan.region);
  const std::string handle = fmt::format("scalars {}", command.plan);
  auto known = std::ranges::find(result_.scalars, handle, &LoweredQueue::ScalarStream::handle);
  if (known == result_.scalars.end()) {
    const std::string what = name(plan, "scalars");
    const bsp::Tensor& all = scalars_of(plan, command.plan);
    const bsp::DataStream stream = graph_.add_host_to_device_fifo(handle, ElementType::u64, words);
    bsp::Sequence program;
    program.add(bsp::Copy(stream, all[0], what));
    if (plan.parts.size() > 1) {
      const auto others = static_cast<std::int64_t>(plan.parts.size());
      program.add(bsp::Copy(all.slice(0, 1).broadcast(others - 1, 0), all.slice(1, others), what));
    }
    sends_.emplace(command.plan, program);
    result_.scalars.push_back({handle, static_cast<std::size_t>(words) * sizeof(std::uint64_t), {}});
    known = std::prev(result_.scalars.end());
  }
  known->commands.push_back(index);
  add_step(handle, sends_.at(command.plan));
}

bsp::Program Lowering::make_compute(const Binding& binding, const std::vector<Operand>& operands,
                                    bool scalars_vary) {
  const std::shared_ptr<const Plan>& plan = plans_[static_cast<std::size_t>(binding.first)];
  const std::string class_name = fmt::format("{}#{}", to_string(plan->region.place), binding.first);
  if (!graph_.has_codelet(class_name))
    graph_.add_codelets({body_class(plan, class_name, device_.workers, scalars_vary)});
  std::vector<std::vector<bsp::Tensor>> partials;
  for (std::size_t r = 0; r < plan->region.reductions.size(); ++r) partials.push_back(add_partials(*plan, r));
  const bsp::ComputeSet set = graph_.add_compute_set(name(*plan, "compute"));
  for (std::size_t i = 0; i < plan->parts.size(); ++i) {
    const bsp::VertexRef vertex = graph_.add_vertex(set, class_name);
    graph_.set_tile_mapping(vertex, plan->parts[i].tile);
    std::vector<Box> local(operands.size());
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
      if (!operands[slot].used) continue;
      graph_.connect(bsp::field(vertex, fmt::format("array {}", slot)), operands[slot].tensors[i]);
      local[slot] = operands[slot].boxes[i];
    }
    for (std::size_t r = 0; r < partials.size(); ++r)
      graph_.connect(bsp::field(vertex, fmt::format("reduction {}", r)), partials[r][i]);
    if (scalars_vary)
      graph_.connect(bsp::field(vertex, "scalars"),
                     scalars_of(*plan, binding.first)[static_cast<std::int64_t>(i)]);
    set_body_state(graph_, vertex, *plan, plan->parts[i], local);
    const bsp::PerfEstimate cost = cost_of_part(*plan, plan->parts[i], device_);
    graph_.set_perf_estimate(vertex, cost.cycles, cost.flops);
  }
  bsp::Sequence program;
  program.add(bsp::Execute(set, name(*plan, "compute")));
  for (std::size_t r = 0; r < partials.size(); ++r) {
    std::vector<bsp::Tensor> rows;
    for (const bsp::Tensor& tensor : partials[r]) rows.push_back(tensor.expand({0}));
    add_combining(binding, r, bsp::concat(rows), program);
  }
  return program;
}

Bound& Lowering::bound(const Command& command) {
  const Binding binding{command.plan, command.arrays};
  const auto [place, added] = bound_.try_emplace(binding);
  if (!added) return place->second;
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  Bound& result = place->second;
  for (std::size_t slot = 0; slot < command.arrays.size(); ++slot)
    result.operands.push_back(make_operand(plan, slot, *storage_.at(command.arrays[slot])));
  if (!plan.parts.empty()) result.compute = make_compute(binding, result.operands, command.scalars_vary);
  return result;
}

void Lowering::add_step(const std::string& key, const bsp::Program& program) {
  const auto [place, added] = step_numbers_.try_emplace(key, static_cast<int>(steps_.size()));
  if (added) steps_.push_back(program);
  row_.push_back(place->second);
}

void Lowering::add_launch(std::size_t index) {
  const Command& command = commands_[index];
  Bound& launch = bound(command);
  if (!launch.compute) return;  // no iterations
  if (command.sends_scalars) send_scalars(index);
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  bsp::Sequence program;
  std::string key = fmt::format("launch {}", command.plan);
  for (std::size_t slot = 0; slot < launch.operands.size(); ++slot) {
    const Operand& operand = launch.operands[slot];
    DeviceArray* array = command.arrays[slot];
    const bool stale = operand.used && operand.refresh && fresh_[array].insert(operand.signature).second;
    key += fmt::format(" {}{}", array->number, stale ? "*" : "");
    if (stale) program.add(*operand.refresh);
  }
  program.add(*launch.compute);
  for (std::size_t slot = 0; slot < launch.operands.size(); ++slot) {
    if (launch.operands[slot].write_back) program.add(*launch.operands[slot].write_back);
    if (plan.uses[slot].writes) fresh_[command.arrays[slot]].clear();
  }
  for (const Reduction& reduction : plan.region.reductions)
    fresh_[command.arrays[static_cast<std::size_t>(reduction.array)]].clear();
  add_step(key, program);
}

void Lowering::add_transfer(std::size_t index) {
  const Command& command = commands_[index];
  DeviceArray* array = command.arrays[0];
  const Storage& storage = *storage_.at(array);
  const bool in = command.kind == CommandKind::to_device;
  LoweredQueue::Transfer transfer{fmt::format("{} {}", in ? "to" : "from", index), index,
                                  storage.owned(command.begin, command.end)};
  if (transfer.boxes.empty()) return;
  const bsp::Tensor tensor = storage.tensor(transfer.boxes);
  const std::string what = fmt::format("{} {} {}", array->name, in ? "from" : "to", "the host");
  if (in) {
    const bsp::DataStream stream =
        graph_.add_host_to_device_fifo(transfer.handle, tensor.element_type(), tensor.num_elements());
    add_step(transfer.handle, bsp::Copy(stream, tensor, what));
    fresh_[array].clear();
  } else {
    const bsp::DataStream stream =
        graph_.add_device_to_host_fifo(transfer.handle, tensor.element_type(), tensor.num_elements());
    add_step(transfer.handle, bsp::Copy(tensor, stream, what));
  }
  result_.transfers.push_back(std::move(transfer));
}

LoweredQueue Lowering::finish() {
  bsp::Sequence main;
  for (const Turns& turns : find_turns(row_)) {
    bsp::Sequence body;
    for (std::size_t i = 0; i < turns.period; ++i)
      body.add(steps_[static_cast<std::size_t>(row_[turns.begin + i])]);
    if (turns.count == 1) {
      main.add(body);
      continue;
    }
    main.add(bsp::Repeat(turns.count, body));
    result_.captured += fmt::format("{}{} x ({} step{})", result_.captured.empty() ? "" : ", ", turns.count,
                                    turns.period, turns.period == 1 ? "" : "s");
  }
  const bsp::Program programs[] = {main};
  bsp::CompileOptions compile;
  compile.allow_undefined_reads = true;  // map(alloc) gives memory that holds anything
  compile.timing_only = options_.timing_only;
  result_.engine = std::make_unique<bsp::Engine>(
      graph_, programs, bsp::EngineOptions{.threads = options_.threads, .timing_only = options_.timing_only},
      compile);
  return std::move(result_);
}

}  // namespace

LoweredQueue lower_queue(const bsp::Device& device, std::span<const Command> commands,
                         std::span<const std::shared_ptr<const Plan>> plans, const LowerOptions& options) {
  return Lowering(device, commands, plans, options).run();
}

}  // namespace superstep::openmp
