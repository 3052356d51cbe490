#include "superstep/physics/xray/ptycho_object.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "superstep/physics/random_field.h"

namespace superstep::data {
namespace {

constexpr double pi = std::numbers::pi;

// Calls f(y, x) -> value for every pixel of a new map.
template <class F>
Map filled(int height, int width, F f) {
  Map map(height, width);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) map.at(y, x) = static_cast<float>(f(y, x));
  return map;
}

// 1 well inside (distance > 0), 0 well outside, linear over one pixel.
double soft_edge(double distance) { return std::clamp(distance + 0.5, 0.0, 1.0); }

struct Rotation {
  double c, s;
  explicit Rotation(double angle) : c(std::cos(angle)), s(std::sin(angle)) {}
};

// A disc (no corners) or a regular polygon about (y, x): how far a point lies inside its edge, in pixels.
struct Leaf {
  double y, x, radius, thickness;
  int corners;
  double angle;

  double inside(double py, double px) const {
    const double dy = py - y, dx = px - x;
    if (corners == 0) return radius - std::hypot(dy, dx);
    const double sector = 2 * pi / corners;
    const double turn = std::remainder(std::atan2(dy, dx) - angle, sector);
    return radius * std::cos(sector / 2) - std::hypot(dy, dx) * std::cos(turn);
  }
};

Leaf draw_leaf(RandomStream& random, int height, int width) {
  // Radii with density r^-3 between the limits: the scale-invariant dead-leaves model (Lee, Mumford and
  // Huang, IJCV 41, 2001).
  const double smallest = 4, largest = std::max(8.0, 0.15 * std::min(height, width));
  const double u = random.uniform();
  const double inverse_square =
      (1 - u) / (smallest * smallest) + u / (largest * largest);  // inverse of the distribution function
  const int corners = random.below(2) ? 0 : 3 + static_cast<int>(random.below(4));
  return {random.uniform(0, height),
          random.uniform(0, width),
          1 / std::sqrt(inverse_square),
          random.uniform(),
          corners,
          random.uniform(0, 2 * pi)};
}

void lay(Map& map, const Leaf& leaf) {
  const auto from = [](double centre, double radius) {
    return std::max(0, static_cast<int>(centre - radius) - 1);
  };
  const int y_end = std::min(map.height, static_cast<int>(leaf.y + leaf.radius) + 2);
  const int x_end = std::min(map.width, static_cast<int>(leaf.x + leaf.radius) + 2);
  for (int y = from(leaf.y, leaf.radius); y < y_end; ++y)
    for (int x = from(leaf.x, leaf.radius); x < x_end; ++x) {
      const double cover = soft_edge(leaf.inside(y, x));
      map.at(y, x) = static_cast<float>((1 - cover) * map.at(y, x) + cover * leaf.thickness);
    }
}

struct Grain {
  double y, x, thickness;
};

// The grain of the nearest seed, thinner within a pixel or so of the boundary to the second nearest.
double grain_thickness(const std::vector<Grain>& grains, int y, int x, double boundary) {
  double nearest = 1e30, second = 1e30, thickness = 0;
  for (const Grain& grain : grains) {
    const double distance = (grain.y - y) * (grain.y - y) + (grain.x - x) * (grain.x - x);
    if (distance < nearest) {
      second = nearest;
      nearest = distance;
      thickness = grain.thickness;
    } else {
      second = std::min(second, distance);
    }
  }
  return thickness * soft_edge(0.5 * (std::sqrt(second) - std::sqrt(nearest)) - boundary);
}

void add_grating(Map& map, RandomStream& random) {
  const double side = random.uniform(0.2, 0.6) * std::min(map.height, map.width);
  const double y0 = random.uniform(0, map.height), x0 = random.uniform(0, map.width);
  const double period = std::exp(random.uniform(std::log(4.0), std::log(24.0)));
  const double thickness = random.uniform(0.4, 1.0);
  const Rotation turn(random.uniform(0, pi));
  for (int y = 0; y < map.height; ++y)
    for (int x = 0; x < map.width; ++x) {
      const double u = turn.c * (x - x0) + turn.s * (y - y0), v = turn.c * (y - y0) - turn.s * (x - x0);
      const double inside = side / 2 - std::max(std::abs(u), std::abs(v));
      const double line = soft_edge(period / 4 - std::abs(std::remainder(u, period)));
      map.at(y, x) = std::max(map.at(y, x), static_cast<float>(thickness * soft_edge(inside) * line));
    }
}

using Structure = Map (*)(RandomStream&, int, int);
constexpr std::array<Structure, 5> structures{siemens_star, line_patterns, gaussian_blobs, dead_leaves,
                                              voronoi_grains};

}  // namespace

Map siemens_star(RandomStream& random, int height, int width) {
  const double y0 = random.uniform(0.3, 0.7) * height, x0 = random.uniform(0.3, 0.7) * width;
  const double radius = random.uniform(0.35, 0.6) * std::max(height, width);
  const double spokes = 8 + static_cast<double>(random.below(25)), turn = random.uniform(0, 2 * pi);
  return filled(height, width, [&](int y, int x) {
    const double r = std::hypot(y - y0, x - x0), angle = std::atan2(y - y0, x - x0);
    const double from_edge = r * std::sin(spokes * angle + turn) / spokes;
    return soft_edge(from_edge) * soft_edge(radius - r);
  });
}

Map line_patterns(RandomStream& random, int height, int width) {
  Map map(height, width);
  const auto patches = 3 + random.below(5);
  for (std::uint64_t i = 0; i < patches; ++i) add_grating(map, random);
  return map;
}

// A Gaussian field of variance 1 and covariance exp(-r^2 / (2 l^2)), cut at a threshold.
Map gaussian_blobs(RandomStream& random, int height, int width) {
  const double length = random.uniform(3, 14), threshold = random.uniform(-0.7, 0.7);
  Map map(height, width);
  map.values = gaussian_field(random, width, height, length / std::numbers::sqrt2);
  // A field of unit variance and correlation length l has a mean square gradient of 2 / l^2.
  for (float& value : map.values)
    value = static_cast<float>(soft_edge((value - threshold) * length / std::numbers::sqrt2));
  return map;
}

Map dead_leaves(RandomStream& random, int height, int width) {
  Map map(height, width, static_cast<float>(random.uniform()));
  const int leaves = height * width / 60;
  for (int i = 0; i < leaves; ++i) lay(map, draw_leaf(random, height, width));
  return map;
}

Map voronoi_grains(RandomStream& random, int height, int width) {
  const double diameter = random.uniform(12, 40);
  const int count = std::max(4, static_cast<int>(height * width / (diameter * diameter)));
  std::vector<Grain> grains;
  for (int i = 0; i < count; ++i)
    grains.push_back({random.uniform(0, height), random.uniform(0, width), random.uniform()});
  const double boundary = random.uniform(0, 1.5);
  return filled(height, width, [&](int y, int x) { return grain_thickness(grains, y, x, boundary); });
}

Map thickness_map(RandomStream& random, int height, int width) {
  Map mixed(height, width);
  std::array<int, structures.size()> order{0, 1, 2, 3, 4};
  const std::size_t parts = 2 + random.below(2);
  double total = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    std::swap(order[part], order[part + random.below(order.size() - part)]);
    const double weight = random.uniform(0.3, 1.0);
    const Map map = structures[static_cast<std::size_t>(order[part])](random, height, width);
    for (std::size_t i = 0; i < map.values.size(); ++i)
      mixed.values[i] += static_cast<float>(weight) * map.values[i];
    total += weight;
  }
  for (float& value : mixed.values) value = std::clamp(value / static_cast<float>(total), 0.0f, 1.0f);
  return mixed;
}

double Material::max_thickness() const { return max_phase * wavelength() / (2 * pi * delta); }

std::vector<std::complex<float>> transmission(const Map& thickness, const Material& material) {
  std::vector<std::complex<float>> object;
  object.reserve(thickness.values.size());
  const double to_phase = 2 * pi * material.delta * material.max_thickness() / material.wavelength();
  for (const float value : thickness.values) {
    const double shift = to_phase * value;
    object.emplace_back(std::polar(std::exp(-material.beta_over_delta * shift), -shift));
  }
  return object;
}

}  // namespace superstep::data
