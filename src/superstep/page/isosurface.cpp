#include "superstep/page/isosurface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "superstep/base/error.h"

namespace superstep::page {
namespace {

using Vector = std::array<double, 3>;

Vector between(const Point& from, const Point& to) {
  return {double{to[0]} - from[0], double{to[1]} - from[1], double{to[2]} - from[2]};
}
Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// A corner of a cube: bits 1, 2 and 4 are steps along x, y and z.
using Corner = int;
using Tetrahedron = std::array<Corner, 4>;

// From corner 0 to corner 7 along the edges in each order of the axes; all turn the same way.
constexpr std::array<Tetrahedron, 6> tetrahedra{
    {{0, 1, 3, 7}, {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 3, 2, 7}, {0, 6, 4, 7}, {0, 5, 1, 7}}};

// Places of a tetrahedron's corners in an order that turns as it does, with those first that lie inside.
constexpr std::array<Tetrahedron, 4> one_first{{{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}}};
constexpr std::array<Tetrahedron, 6> two_first{
    {{0, 1, 2, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {1, 2, 0, 3}, {1, 3, 2, 0}, {2, 3, 0, 1}}};

// Voxels are counted from -1 to the extent: a layer of its own around the volume is outside.
class Surface {
 public:
  Surface(std::span<const float> values, std::array<int, 3> extents, float level)
      : values_(values), extents_(extents), level_(level) {
    const auto [low, high] = std::ranges::minmax(values);
    beyond_ = std::min(low, 2 * level - high);
    if (!(beyond_ < level)) beyond_ = level - 1;
  }

  Mesh made() {
    for (int z = -1; z < extents_[2]; ++z)
      for (int y = -1; y < extents_[1]; ++y)
        for (int x = -1; x < extents_[0]; ++x) cut_cube({x, y, z});
    return std::move(mesh_);
  }

 private:
  using Voxel = std::array<int, 3>;

  static Voxel at_corner(const Voxel& cube, Corner corner) {
    return {cube[0] + (corner & 1), cube[1] + (corner >> 1 & 1), cube[2] + (corner >> 2)};
  }
  bool in_volume(const Voxel& voxel) const {
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (voxel[axis] < 0 || voxel[axis] >= extents_[axis]) return false;
    return true;
  }
  std::size_t index(const Voxel& voxel) const {
    return (static_cast<std::size_t>(voxel[2]) * static_cast<std::size_t>(extents_[1]) +
            static_cast<std::size_t>(voxel[1])) *
               static_cast<std::size_t>(extents_[0]) +
           static_cast<std::size_t>(voxel[0]);
  }
  float value(const Voxel& voxel) const { return in_volume(voxel) ? values_[index(voxel)] : beyond_; }
  bool inside(const Voxel& voxel) const { return value(voxel) >= level_; }

  void cut_cube(const Voxel& cube) {
    int count = 0;
    for (Corner corner = 0; corner < 8; ++corner) count += inside(at_corner(cube, corner));
    if (count == 0 || count == 8) return;
    for (const Tetrahedron& corners : tetrahedra) cut(cube, corners);
  }

  void cut(const Voxel& cube, const Tetrahedron& corners) {
    int mask = 0;
    for (std::size_t i = 0; i < 4; ++i) mask |= inside(at_corner(cube, corners[i])) << i;
    const auto crossing = [&](int a, int b) {
      return point_between(at_corner(cube, corners[static_cast<std::size_t>(a)]),
                           at_corner(cube, corners[static_cast<std::size_t>(b)]));
    };
    for (const auto& [i, j, k, l] : one_first) {
      if (mask == 1 << i) return triangle(crossing(i, j), crossing(i, k), crossing(i, l));
      if (mask == (15 ^ 1 << i)) return triangle(crossing(j, i), crossing(l, i), crossing(k, i));
    }
    for (const auto& [i, j, k, l] : two_first)
      if (mask == (1 << i | 1 << j)) {
        const std::uint32_t a = crossing(i, k), b = crossing(i, l), c = crossing(j, l), d = crossing(j, k);
        triangle(a, b, c);
        triangle(a, c, d);
      }
  }

  void triangle(std::uint32_t a, std::uint32_t b, std::uint32_t c) { mesh_.triangles.push_back({a, b, c}); }

  // Where the value passes the level on the way from a voxel inside to one outside; made once an edge.
  std::uint32_t point_between(const Voxel& in, const Voxel& out) {
    const Voxel low{std::min(in[0], out[0]), std::min(in[1], out[1]), std::min(in[2], out[2])};
    std::uint64_t key = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
      key =
          (key * static_cast<std::uint64_t>(extents_[axis] + 2) + static_cast<std::uint64_t>(low[axis] + 1)) *
          (axis == 2 ? 8 : 1);
    for (std::size_t axis = 0; axis < 3; ++axis) key |= std::uint64_t{in[axis] != out[axis]} << axis;
    const auto [found, fresh] = known_.try_emplace(key, static_cast<std::uint32_t>(mesh_.points.size()));
    if (fresh) add_point(in, out);
    return found->second;
  }

  void add_point(const Voxel& in, const Voxel& out) {
    const float a = value(in), b = value(out), share = (a - level_) / (a - b);
    const Vector at_in = slope(in), at_out = slope(out);
    Point point{}, normal{};
    Vector down{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      point[axis] = std::lerp(static_cast<float>(in[axis]), static_cast<float>(out[axis]), share);
      down[axis] = -std::lerp(at_in[axis], at_out[axis], double{share});
    }
    const double length = std::sqrt(dot(down, down));
    for (std::size_t axis = 0; axis < 3; ++axis)
      normal[axis] = length > 0 ? static_cast<float>(down[axis] / length) : 0.0f;
    mesh_.points.push_back(point);
    mesh_.normals.push_back(normal);
    mesh_.between.push_back({index(in), in_volume(out) ? index(out) : index(in), share});
  }

  Vector slope(const Voxel& voxel) const {
    Vector slope{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      Voxel before = voxel, after = voxel;
      --before[axis], ++after[axis];
      slope[axis] = 0.5 * (double{value(after)} - value(before));
    }
    return slope;
  }

  std::span<const float> values_;
  std::array<int, 3> extents_;
  float level_, beyond_ = 0;
  Mesh mesh_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // points by edge
};

}  // namespace

Mesh isosurface(std::span<const float> values, int width, int height, int depth, float level) {
  const bool sized = width > 0 && height > 0 && depth > 0;
  if (!sized || values.size() != static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                                     static_cast<std::size_t>(depth))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a volume of {} x {} x {} voxels cannot have {} values", depth, height, width,
                            values.size()),
                "surface");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw Error(ErrorCode::invalid_argument, fmt::format("voxel {} is {}", i, values[i]), "surface");
  return Surface(values, {width, height, depth}, level).made();
}

double area_of(const Mesh& mesh) {
  double area = 0;
  for (const auto& [a, b, c] : mesh.triangles) {
    const Vector normal =
        cross(between(mesh.points[a], mesh.points[b]), between(mesh.points[a], mesh.points[c]));
    area += 0.5 * std::sqrt(dot(normal, normal));
  }
  return area;
}

double volume_of(const Mesh& mesh) {
  double volume = 0;
  constexpr Point origin{};
  for (const auto& [a, b, c] : mesh.triangles)
    volume += dot(between(origin, mesh.points[a]),
                  cross(between(origin, mesh.points[b]), between(origin, mesh.points[c]))) /
              6;
  return volume;
}

double radius_of(const Mesh& mesh, const Point& centre) {
  double largest = 0;
  for (const Point& point : mesh.points) {
    const Vector away = between(centre, point);
    largest = std::max(largest, dot(away, away));
  }
  return std::sqrt(largest);
}

std::vector<float> angles_on(const Mesh& mesh, std::span<const std::complex<float>> field) {
  std::vector<float> angles;
  for (const auto& [inside, outside, share] : mesh.between)
    angles.push_back(std::arg(field[inside] * (1 - share) + field[outside] * share));
  return angles;
}

}  // namespace superstep::page
