// Voxels that share a face with another.
#pragma once

#include <cstddef>

namespace superstep::baseline {

struct Extents {
  std::size_t width, height, depth;
};

// Calls `visit` with the index of each voxel [z][y][x] that shares a face with voxel `at`.
template <class Visit>
void for_each_face_neighbour(std::size_t at, const Extents& extents, Visit&& visit) {
  const std::size_t w = extents.width, plane = w * extents.height;
  const std::size_t x = at % w, y = at % plane / w, z = at / plane;
  if (x > 0) visit(at - 1);
  if (x + 1 < w) visit(at + 1);
  if (y > 0) visit(at - w);
  if (y + 1 < extents.height) visit(at + w);
  if (z > 0) visit(at - plane);
  if (z + 1 < extents.depth) visit(at + plane);
}

}  // namespace superstep::baseline
