// The surface in a volume where its values pass a level, as triangles; and pictures of it that turn.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/page/page.h"

namespace superstep::page {

using Point = std::array<float, 3>;  // (x, y, z) in voxels; (0, 0, 0) is the centre of the first one

// Closed, without an edge that is a border: what reaches the sides of the volume is closed there.
struct Mesh {
  std::vector<Point> points, normals;                   // normals of length 1, to the smaller values
  std::vector<std::array<std::uint32_t, 3>> triangles;  // anticlockwise as seen from the smaller values

  // Each point lies between two voxels, the second so far below the level that the share of it counts; equal
  // voxels where the second would lie outside the volume.
  struct Between {
    std::size_t inside, outside;
    float share;
  };
  std::vector<Between> between;  // of every point
};

// By tetrahedra: every cube of eight voxels is cut into the six that share its long diagonal, and in each the
// values are taken for linear (A. Doi and A. Koide, IEICE Trans. E74, 214, 1991): no case is ambiguous, and
// equal faces of neighbours are cut alike. `values` [depth, height, width], row-major; what is at least
// `level` is inside. Throws Error (invalid_argument) where their number is not that of the voxels, and for
// values that are not finite.
Mesh isosurface(std::span<const float> values, int width, int height, int depth, float level);

double area_of(const Mesh& mesh);                         // voxels squared
double volume_of(const Mesh& mesh);                       // enclosed, voxels cubed
double radius_of(const Mesh& mesh, const Point& centre);  // the farthest point from there; 0 of an empty mesh

// The angle of a complex volume at the mesh's points, in [-pi, pi].
std::vector<float> angles_on(const Mesh& mesh, std::span<const std::complex<float>> field);

// How a surface is drawn: around the axis of z, which points upwards, one whole turn in `frames` pictures.
struct Turning {
  Point centre{};    // that stays in the middle
  double reach = 1;  // voxels from there to the picture's edge
  int frames = 36;
  int pixels = 160;                // along a side of a picture
  double tilt = 0.4;               // rad that the eye lies above the horizon
  Colormap map = Colormap::phase;  // of one value a point, -pi to pi
};

// All frames side by side, first to last; a surface without triangles is empty ground. Throws Error
// (invalid_argument) where `values` are not one a point.
Image turning(const Mesh& mesh, std::span<const float> values, const Turning& how);

}  // namespace superstep::page
