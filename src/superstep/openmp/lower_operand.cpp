#include <numeric>

#include "superstep/openmp/lowering.h"
#include "superstep/openmp/reduce.h"

namespace superstep::openmp {
namespace {

std::vector<Box> needed(const ArrayUse& use) { return use.writes ? use.reached : use.read; }

bsp::Program copy(std::vector<bsp::Tensor> from, std::vector<bsp::Tensor> to, const std::string& name) {
  return bsp::Copy(bsp::concat(from), bsp::concat(to), name);
}

}  // namespace

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

}  // namespace superstep::openmp
