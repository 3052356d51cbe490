// Regions of a view in the coordinates of a shape, for the operations that treat one dimension apart.
#pragma once

#include <vector>

#include "superstep/bsp/graph/view.h"

namespace superstep::bsp {

struct AlignedLoop {
  std::int64_t extent = 1;
  int axis = 0;
  std::int64_t step = 0;  // along the axis, positive
  std::int64_t element_stride = 0;
};

// A region none of whose loops carries from one dimension into the next.
struct AlignedRegion {
  VariableId variable;
  std::int64_t element_offset = 0;
  std::vector<std::int64_t> start;  // coordinates of the first place
  std::vector<AlignedLoop> loops;

  std::int64_t last(int axis) const;  // the largest coordinate along an axis
};

// Splits a region, where it must, into aligned ones and appends them.
void align(const Region& region, const Shape& shape, std::vector<AlignedRegion>& out);

// The region in places of a shape.
Region place(const AlignedRegion& region, const Shape& shape);

// The parts of a region whose coordinate along `axis` lies in [begin, end), appended.
void restrict_to(const AlignedRegion& region, int axis, std::int64_t begin, std::int64_t end,
                 std::vector<AlignedRegion>& out);

// Drops loops of one, puts the outermost first and joins loops that are one.
void simplify(Region& region);

}  // namespace superstep::bsp
