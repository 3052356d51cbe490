#include "superstep/openmp/storage.h"

#include <cstring>

#include "superstep/openmp/reduce.h"

namespace superstep::openmp {
namespace {

bsp::Tensor slice_of(const bsp::Tensor& tensor, const Box& outer, const Box& inner) {
  std::vector<std::int64_t> begin, end;
  for (std::size_t axis = 0; axis < outer.rank(); ++axis) {
    begin.push_back(inner.begin[axis] - outer.begin[axis]);
    end.push_back(inner.end[axis] - outer.begin[axis]);
  }
  return tensor.slice(begin, end);
}

Shape shape_of(const Box& box) {
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < box.rank(); ++axis) extents.push_back(box.extent(axis));
  return Shape(extents);
}

// Rows of a box in a row-major array, all in one when they follow one another.
void for_each_run(const Box& box, const std::vector<std::int64_t>& extents,
                  FunctionRef<void(std::int64_t first, std::int64_t length)> f) {
  bool together = !box.empty();
  std::int64_t slice = 1;
  for (std::size_t axis = 1; axis < box.rank(); ++axis) {
    together = together && box.extent(axis) == extents[axis];
    slice *= extents[axis];
  }
  if (together && box.rank() > 0) return f(box.begin[0] * slice, box.volume());
  for_each_row(box, extents, f);
}

}  // namespace

Storage::Storage(bsp::Graph& graph, const DeviceArray& array, const Halo& halo) : array_(&array) {
  std::vector<std::uint32_t> tiles;
  std::int64_t total = 0;
  array.placement->cells.for_each([&](std::uint32_t tile, const Box& cell) {
    Box padded = cell;
    if (!cell.empty())
      for (std::size_t axis = 0; axis < cell.rank(); ++axis) {
        padded.begin[axis] = std::max<std::int64_t>(0, cell.begin[axis] - halo.low[axis]);
        padded.end[axis] = std::min(extents()[axis], cell.end[axis] + halo.high[axis]);
      }
    if (tile >= cell_of_tile_.size()) cell_of_tile_.resize(tile + 1, -1);
    cell_of_tile_[tile] = static_cast<int>(own_.size());
    own_.push_back(cell);
    padded_.push_back(padded);
    tiles.push_back(tile);
    total += padded.volume();
  });
  const bsp::Tensor variable = graph.add_variable(stored_type(array.type), {total}, array.name);
  bsp::TileMapping mapping(graph.num_tiles());
  std::int64_t first = 0;
  for (std::size_t cell = 0; cell < own_.size(); ++cell) {
    const std::int64_t end = first + padded_[cell].volume();
    if (end > first) mapping[tiles[cell]].push_back({first, end});
    boxes_.push_back(variable.slice(first, end).reshape(shape_of(padded_[cell])));
    first = end;
  }
  graph.set_tile_mapping(variable, mapping);
}

int Storage::cell_of(std::uint32_t tile) const {
  return tile < cell_of_tile_.size() ? cell_of_tile_[tile] : -1;
}

bsp::Tensor Storage::slice(std::size_t cell, const Box& box) const {
  return slice_of(boxes_[cell], padded_[cell], box);
}

void Storage::pair_up(const Box& box, const std::vector<std::int64_t>& extents, const bsp::Tensor& local,
                      int except, std::vector<bsp::Tensor>& owned, std::vector<bsp::Tensor>& locals) const {
  const Cells& cells = array_->placement->cells;
  if (extents == this->extents()) {
    cells.for_each_touching(box, [&](std::uint32_t tile, const Box& common) {
      const int cell = cell_of(tile);
      if (cell == except) return;
      owned.push_back(slice(static_cast<std::size_t>(cell), common).flatten());
      locals.push_back(slice_of(local, box, common).flatten());
    });
    return;
  }
  // Seen with other extents: run by run of element numbers.
  const bsp::Tensor flat = local.flatten();
  std::int64_t place = 0;
  for_each_run(box, extents, [&](std::int64_t first, std::int64_t length) {
    for (const OwnedBox& piece : this->owned(first, first + length)) {
      if (static_cast<int>(piece.cell) == except) continue;
      for_each_row(piece.box, this->extents(), [&](std::int64_t from, std::int64_t size) {
        const Box row = boxes_of(from, from + size, this->extents()).front();
        owned.push_back(slice(piece.cell, row).flatten());
        locals.push_back(flat.slice(place + from - first, place + from - first + size));
      });
    }
    place += length;
  });
}

std::vector<Storage::OwnedBox> Storage::owned(std::int64_t begin, std::int64_t end) const {
  std::vector<OwnedBox> result;
  for (const Box& box : boxes_of(begin, end, extents()))
    array_->placement->cells.for_each_touching(box, [&](std::uint32_t tile, const Box& common) {
      result.push_back({static_cast<std::size_t>(cell_of(tile)), common});
    });
  return result;
}

bsp::Tensor Storage::tensor(const std::vector<OwnedBox>& boxes) const {
  std::vector<bsp::Tensor> tensors;
  for (const OwnedBox& owned : boxes) tensors.push_back(slice(owned.cell, owned.box).flatten());
  return bsp::concat(tensors);
}

namespace {

template <class Move>
void for_each_packed(const std::vector<Storage::OwnedBox>& boxes, const std::vector<std::int64_t>& extents,
                     Move&& move) {
  std::int64_t place = 0;
  for (const Storage::OwnedBox& owned : boxes)
    for_each_run(owned.box, extents, [&](std::int64_t first, std::int64_t length) {
      move(first, place, length);
      place += length;
    });
}

}  // namespace

void pack(const std::vector<Storage::OwnedBox>& boxes, const std::vector<std::int64_t>& extents,
          std::size_t element_bytes, std::int64_t begin, const std::byte* linear, std::byte* packed) {
  for_each_packed(boxes, extents, [&](std::int64_t first, std::int64_t place, std::int64_t length) {
    std::memcpy(packed + static_cast<std::size_t>(place) * element_bytes,
                linear + static_cast<std::size_t>(first - begin) * element_bytes,
                static_cast<std::size_t>(length) * element_bytes);
  });
}

void unpack(const std::vector<Storage::OwnedBox>& boxes, const std::vector<std::int64_t>& extents,
            std::size_t element_bytes, std::int64_t begin, const std::byte* packed, std::byte* linear) {
  for_each_packed(boxes, extents, [&](std::int64_t first, std::int64_t place, std::int64_t length) {
    std::memcpy(linear + static_cast<std::size_t>(first - begin) * element_bytes,
                packed + static_cast<std::size_t>(place) * element_bytes,
                static_cast<std::size_t>(length) * element_bytes);
  });
}

}  // namespace superstep::openmp
