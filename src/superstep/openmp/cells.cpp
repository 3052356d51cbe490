#include "superstep/openmp/cells.h"

#include <algorithm>
#include <cstdlib>

#include "superstep/base/integers.h"

namespace superstep::openmp {

std::int64_t Cells::count() const {
  std::int64_t product = 1;
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) product *= along(axis);
  return product;
}

Cells one_cell(const Box& box, std::int64_t tile) {
  Cells cells;
  cells.first_tile = tile;
  for (std::size_t axis = 0; axis < box.rank(); ++axis) {
    cells.cuts.push_back({box.begin[axis], box.end[axis]});
    cells.tile_steps.push_back(0);
  }
  return cells;
}

namespace {

// Every coordinate with first[k] <= c[k] < last[k], row-major.
void walk(const Cells& cells, const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& last,
          FunctionRef<void(std::uint32_t, const Box&)> f) {
  const std::size_t rank = cells.cuts.size();
  for (std::size_t k = 0; k < rank; ++k)
    if (first[k] >= last[k]) return;
  std::vector<std::int64_t> at = first;
  Box box{std::vector<std::int64_t>(rank), std::vector<std::int64_t>(rank)};
  while (true) {
    std::int64_t tile = cells.first_tile;
    for (std::size_t k = 0; k < rank; ++k) {
      tile += at[k] * cells.tile_steps[k];
      box.begin[k] = cells.cuts[k][static_cast<std::size_t>(at[k])];
      box.end[k] = cells.cuts[k][static_cast<std::size_t>(at[k]) + 1];
    }
    f(static_cast<std::uint32_t>(tile), box);
    std::size_t axis = rank;
    while (axis > 0 && ++at[axis - 1] == last[axis - 1]) {
      at[axis - 1] = first[axis - 1];
      --axis;
    }
    if (axis == 0) return;
  }
}

}  // namespace

void Cells::for_each(FunctionRef<void(std::uint32_t tile, const Box& cell)> f) const {
  std::vector<std::int64_t> last;
  for (std::size_t k = 0; k < cuts.size(); ++k) last.push_back(along(k));
  walk(*this, std::vector<std::int64_t>(cuts.size(), 0), last, f);
}

void Cells::for_each_touching(const Box& box,
                              FunctionRef<void(std::uint32_t tile, const Box& common)> f) const {
  if (box.empty()) return;
  std::vector<std::int64_t> first, last;
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    const auto from = std::upper_bound(cuts[k].begin(), cuts[k].end(), box.begin[k]);
    const auto to = std::lower_bound(cuts[k].begin(), cuts[k].end(), box.end[k]);
    first.push_back(std::max<std::int64_t>(0, from - cuts[k].begin() - 1));
    last.push_back(std::min<std::int64_t>(along(k), to - cuts[k].begin()));
  }
  walk(*this, first, last, [&](std::uint32_t tile, const Box& cell) {
    if (const Box common = intersection(cell, box); !common.empty()) f(tile, common);
  });
}

namespace {

// The distributed loop that a subscript follows, when it has exactly one.
std::optional<std::size_t> loop_of(const Region& region, const Affine& subscript) {
  std::optional<std::size_t> loop;
  for (std::size_t k = 0; k < static_cast<std::size_t>(region.distributed); ++k) {
    if (subscript.coefficient(k) == 0) continue;
    if (loop) return std::nullopt;
    loop = k;
  }
  return loop;
}

// The least value of a subscript without its distributed loop.
std::int64_t offset_of(const Region& region, const Affine& subscript) {
  std::int64_t low = subscript.constant;
  for (std::size_t k = static_cast<std::size_t>(region.distributed); k < region.loops.size(); ++k) {
    const std::int64_t c = subscript.coefficient(k);
    if (c != 0) low += c * (c > 0 ? region.loops[k].begin : region.loops[k].end - 1);
  }
  return low;
}

// For each dimension the loop that it follows; a loop is followed by the first dimension that has it.
std::vector<std::optional<std::size_t>> followed(const Region& region, const Access& access) {
  std::vector<std::optional<std::size_t>> result;
  std::vector<bool> taken(region.loops.size());
  for (const Affine& subscript : access.subscripts) {
    auto loop = loop_of(region, subscript);
    if (loop && taken[*loop]) loop.reset();
    if (loop) taken[*loop] = true;
    result.push_back(loop);
  }
  return result;
}

}  // namespace

Cells cells_of_array(const Region& region, const Access& access, const Cells& iterations) {
  const auto& extents = region.arrays[static_cast<std::size_t>(access.array)].extents;
  const auto loops = followed(region, access);
  Cells cells;
  cells.first_tile = iterations.first_tile;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<std::int64_t> cuts{0};
    std::int64_t step = 0;
    if (const auto loop = loops[axis]) {
      const Affine& subscript = access.subscripts[axis];
      const std::int64_t c = subscript.coefficient(*loop), offset = offset_of(region, subscript);
      const auto& dealt = iterations.cuts[*loop];
      step = c > 0 ? iterations.tile_steps[*loop] : -iterations.tile_steps[*loop];
      if (c < 0)
        cells.first_tile +=
            iterations.tile_steps[*loop] * iterations.along(*loop) - iterations.tile_steps[*loop];
      for (std::size_t i = 1; i + 1 < dealt.size(); ++i) {
        // With a negative coefficient the last iteration before the cut has the lowest element after it.
        const std::int64_t cut = c > 0 ? dealt[i] : dealt[dealt.size() - 1 - i] - 1;
        cuts.push_back(std::clamp<std::int64_t>(c * cut + offset, cuts.back(), extents[axis]));
      }
    }
    cuts.push_back(extents[axis]);
    cells.cuts.push_back(std::move(cuts));
    cells.tile_steps.push_back(step);
  }
  return cells;
}

std::optional<Cells> cells_of_iterations(const Region& region, const Access& access, const Cells& array) {
  const auto loops = followed(region, access);
  Cells cells = one_cell(region.iterations(), array.first_tile);
  std::vector<bool> found(static_cast<std::size_t>(region.distributed));
  for (std::size_t axis = 0; axis < loops.size(); ++axis) {
    if (!loops[axis]) continue;
    const std::size_t k = *loops[axis];
    found[k] = true;
    const Affine& subscript = access.subscripts[axis];
    const std::int64_t c = subscript.coefficient(k), offset = offset_of(region, subscript);
    const auto& dealt = array.cuts[axis];
    const Range range = region.loops[k];
    std::vector<std::int64_t> cuts{range.begin};
    for (std::size_t i = 1; i + 1 < dealt.size(); ++i) {
      // The first iteration at or after the cut, counted along the direction that iterations run.
      const std::int64_t cut =
          c > 0 ? ceil_div(dealt[i] - offset, c) : floor_div(offset - dealt[dealt.size() - 1 - i], -c) + 1;
      cuts.push_back(std::clamp(cut, cuts.back(), range.end));
    }
    cuts.push_back(range.end);
    cells.cuts[k] = std::move(cuts);
    cells.tile_steps[k] = c > 0 ? array.tile_steps[axis] : -array.tile_steps[axis];
    if (c < 0) cells.first_tile += array.tile_steps[axis] * (array.along(axis) - 1);
  }
  for (std::size_t k = 0; k < found.size(); ++k)
    if (!found[k] && region.loops[k].size() > 1) return std::nullopt;
  return cells;
}

}  // namespace superstep::openmp
