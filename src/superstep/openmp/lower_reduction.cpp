#include "superstep/openmp/lowering.h"
#include "superstep/openmp/reduce.h"

namespace superstep::openmp {
namespace {

constexpr std::size_t combined_at_once = 32;  // partial results that one vertex combines: chosen

}  // namespace

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

}  // namespace superstep::openmp
