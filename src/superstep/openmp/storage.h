// An array in the memory of the tiles: every tile has its cell, with room for the elements around it that
// regions read (the halo), so that a body works on one packed box.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "superstep/bsp/graph/graph.h"
#include "superstep/openmp/cells.h"

namespace superstep::openmp {

struct Placement {
  std::vector<std::int64_t> extents;
  Cells cells;  // of the whole array
};

// A mapped array, for as long as its host memory is known. It keeps its placement from its first use on.
struct DeviceArray {
  int number = 0;
  std::string name;
  ElementType type = ElementType::f32;
  std::int64_t count = 0;
  std::optional<Placement> placement;
};

// How far the tiles' boxes reach beyond their cells, a dimension.
struct Halo {
  std::vector<std::int64_t> low, high;
};

class Storage {
 public:
  Storage(bsp::Graph& graph, const DeviceArray& array, const Halo& halo);

  const std::vector<std::int64_t>& extents() const { return array_->placement->extents; }
  const DeviceArray& array() const { return *array_; }
  std::size_t cells() const { return own_.size(); }
  int cell_of(std::uint32_t tile) const;  // -1: none there
  const Box& own(std::size_t cell) const { return own_[cell]; }
  const Box& padded(std::size_t cell) const { return padded_[cell]; }
  const bsp::Tensor& box(std::size_t cell) const { return boxes_[cell]; }  // the padded one
  bsp::Tensor slice(std::size_t cell, const Box& box) const;               // of the cell's padded box

  // The elements of a box of the array seen with `extents` that are not in cell `except`, where they are
  // owned and where they stand in `local`, a tensor of the box's shape, in pairs of one size.
  void pair_up(const Box& box, const std::vector<std::int64_t>& extents, const bsp::Tensor& local, int except,
               std::vector<bsp::Tensor>& owned, std::vector<bsp::Tensor>& locals) const;

  // Elements [begin, end) as owned boxes, in an order that depends on the placement alone.
  struct OwnedBox {
    std::size_t cell;
    Box box;
  };
  std::vector<OwnedBox> owned(std::int64_t begin, std::int64_t end) const;
  bsp::Tensor tensor(const std::vector<OwnedBox>& boxes) const;  // one after the other, flat

 private:
  const DeviceArray* array_;
  std::vector<Box> own_, padded_;
  std::vector<bsp::Tensor> boxes_;
  std::vector<int> cell_of_tile_;
};

// Between elements [begin, end) in their order and the order of `boxes`.
void pack(const std::vector<Storage::OwnedBox>& boxes, const std::vector<std::int64_t>& extents,
          std::size_t element_bytes, std::int64_t begin, const std::byte* linear, std::byte* packed);
void unpack(const std::vector<Storage::OwnedBox>& boxes, const std::vector<std::int64_t>& extents,
            std::size_t element_bytes, std::int64_t begin, const std::byte* packed, std::byte* linear);

}  // namespace superstep::openmp
