#include "superstep/physics/xray/crystal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace superstep::data {
namespace {

constexpr double pi = std::numbers::pi;
constexpr int directions = 400;  // in which a crystal's reach is looked at

VoxelVector unit(const VoxelVector& v) {
  const double length = std::sqrt(dot(v, v));
  return {v[0] / length, v[1] / length, v[2] / length};
}

// Evenly spread over the sphere (a Fibonacci lattice).
VoxelVector direction(int index) {
  const double z = 1 - (2 * index + 1.0) / directions, angle = index * pi * (3 - std::sqrt(5.0));
  const double r = std::sqrt(1 - z * z);
  return {z, r * std::sin(angle), r * std::cos(angle)};
}

// A random rotation: the columns of a unit quaternion with normal components (Shoemake, 1992).
std::array<VoxelVector, 3> draw_rotation(RandomStream& random) {
  double q[4], squares = 0;
  for (double& part : q) {
    part = random.normal();
    squares += part * part;
  }
  for (double& part : q) part /= std::sqrt(squares);
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  return {{{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
           {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
           {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}}};
}

// The normals of a family: all sign and order variants of (h, k, l).
std::vector<VoxelVector> family(std::array<int, 3> hkl) {
  std::vector<VoxelVector> normals;
  std::sort(hkl.begin(), hkl.end());
  do {
    for (int signs = 0; signs < 8; ++signs) {
      VoxelVector normal;
      bool doubled = false;  // the sign of a 0 makes no other normal
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const bool negative = signs >> axis & 1;
        doubled = doubled || (negative && hkl[axis] == 0);
        normal[axis] = negative ? -hkl[axis] : hkl[axis];
      }
      if (!doubled) normals.push_back(unit(normal));
    }
  } while (std::next_permutation(hkl.begin(), hkl.end()));
  return normals;
}

VoxelVector rotated(const std::array<VoxelVector, 3>& rotation, const VoxelVector& v) {
  return {dot(rotation[0], v), dot(rotation[1], v), dot(rotation[2], v)};
}

Facet draw_facet(RandomStream& random, const std::array<VoxelVector, 3>& rotation, VoxelVector normal) {
  for (double& part : normal) part += 0.04 * random.normal();
  return {unit(rotated(rotation, normal)), random.uniform(0.8, 1.25)};
}

// Distance from the origin to the surface.
double reach(const std::vector<Facet>& facets, const VoxelVector& along) {
  double nearest = 1e9;
  for (const Facet& facet : facets) {
    const double slope = dot(facet.normal, along);
    if (slope > 1e-9) nearest = std::min(nearest, facet.distance / slope);
  }
  return nearest;
}

std::vector<VoxelVector> surface_points(const std::vector<Facet>& facets) {
  std::vector<VoxelVector> points;
  for (int i = 0; i < directions; ++i) {
    const VoxelVector along = direction(i);
    const double r = reach(facets, along);
    points.push_back({r * along[0], r * along[1], r * along[2]});
  }
  return points;
}

double largest_distance(const std::vector<VoxelVector>& points) {
  double squares = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const VoxelVector d{points[i][0] - points[j][0], points[i][1] - points[j][1],
                          points[i][2] - points[j][2]};
      squares = std::max(squares, dot(d, d));
    }
  return std::sqrt(squares);
}

}  // namespace

double CrystalShape::depth(const VoxelVector& r) const {
  double least = 1e9;
  for (const Facet& facet : facets) least = std::min(least, facet.distance - dot(facet.normal, r));
  return least;
}

CrystalShape draw_crystal(RandomStream& random, int size, double diameter) {
  CrystalShape shape;
  const auto rotation = draw_rotation(random);
  // The octahedron closes the shape; the other families cut its corners and edges.
  for (const VoxelVector& normal : family({1, 1, 1}))
    shape.facets.push_back(draw_facet(random, rotation, normal));
  std::vector<VoxelVector> others = family({1, 0, 0});
  for (const VoxelVector& normal : family({1, 1, 0})) others.push_back(normal);
  const std::size_t cuts = random.below(13);
  for (std::size_t i = 0; i < cuts; ++i) {
    std::swap(others[i], others[i + random.below(others.size() - i)]);
    shape.facets.push_back(draw_facet(random, rotation, others[i]));
  }
  std::vector<VoxelVector> points = surface_points(shape.facets);
  const double scale = diameter / largest_distance(points);
  for (Facet& facet : shape.facets) facet.distance *= scale;
  shape.diameter = diameter;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                                 [&](auto& a, auto& b) { return a[axis] < b[axis]; });
    shape.origin[axis] = (size - 1) / 2.0 - scale * ((*low)[axis] + (*high)[axis]) / 2;
  }
  return shape;
}

}  // namespace superstep::data
