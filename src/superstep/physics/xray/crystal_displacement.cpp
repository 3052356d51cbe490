#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "superstep/physics/xray/crystal.h"

namespace superstep::data {
namespace {

constexpr double pi = std::numbers::pi;
constexpr std::size_t wave_count = 48;
constexpr double poisson_ratio = 0.35;  // of a typical fcc metal

VoxelVector draw_direction(RandomStream& random) {
  const double z = random.uniform(-1, 1), angle = random.uniform(0, 2 * pi), r = std::sqrt(1 - z * z);
  return {z, r * std::sin(angle), r * std::cos(angle)};
}

VoxelVector cross(const VoxelVector& a, const VoxelVector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

VoxelVector perpendicular(const VoxelVector& v) {
  const VoxelVector helper = std::abs(v[0]) < 0.6 ? VoxelVector{1, 0, 0} : VoxelVector{0, 1, 0};
  const VoxelVector p = cross(v, helper);
  const double length = std::sqrt(dot(p, p));
  return {p[0] / length, p[1] / length, p[2] / length};
}

Dislocation draw_dislocation(RandomStream& random, const CrystalShape& shape, double share) {
  Dislocation drawn;
  const bool present = random.uniform() < share, screw = random.below(2) == 0;
  drawn.sign = random.below(2) ? 1 : -1;
  drawn.line = draw_direction(random);
  drawn.burgers = screw ? drawn.line : perpendicular(drawn.line);
  const VoxelVector away = draw_direction(random);
  const double distance = random.uniform(0, 0.2) * shape.diameter;
  for (std::size_t axis = 0; axis < 3; ++axis) drawn.point[axis] = distance * away[axis];
  if (present) drawn.kind = screw ? Dislocation::Kind::screw : Dislocation::Kind::edge;
  return drawn;
}

// Q.u of an isotropic dislocation with Q along the Burgers vector and Q.b = 2 pi (J. Hirth and J. Lothe,
// Theory of Dislocations): the angle about the line, and for an edge sin(2 angle) / (4 (1 - nu)) more.
double dislocation_phase(const Dislocation& dislocation, const VoxelVector& r) {
  if (dislocation.kind == Dislocation::Kind::none) return 0;
  const bool edge = dislocation.kind == Dislocation::Kind::edge;
  const VoxelVector x_axis = edge ? dislocation.burgers : perpendicular(dislocation.line);
  const VoxelVector y_axis = cross(dislocation.line, x_axis);
  const VoxelVector d{r[0] - dislocation.point[0], r[1] - dislocation.point[1], r[2] - dislocation.point[2]};
  const double angle = std::atan2(dot(d, y_axis), dot(d, x_axis));
  return dislocation.sign * (angle + (edge ? std::sin(2 * angle) / (4 * (1 - poisson_ratio)) : 0));
}

double polynomial_value(const std::array<double, 16>& coefficients, const VoxelVector& p) {
  const auto [z, y, x] = p;
  const double monomials[16] = {z * z,     y * y,     x * x,     z * y,     z * x,     y * x,
                                z * z * z, y * y * y, x * x * x, z * z * y, z * z * x, y * y * z,
                                y * y * x, x * x * z, x * x * y, x * y * z};
  double sum = 0;
  for (std::size_t i = 0; i < 16; ++i) sum += coefficients[i] * monomials[i];
  return sum;
}

// Surfaces relax along their normals, and the more the closer: sum (Q.n) exp(-depth / length).
double relaxation_value(const CrystalShape& shape, const Displacement& displacement, const VoxelVector& r) {
  double sum = 0;
  for (const Facet& facet : shape.facets)
    sum += dot(displacement.scattering, facet.normal) *
           std::exp(-std::max(0.0, facet.distance - dot(facet.normal, r)) / displacement.relaxation_depth);
  return sum;
}

// A sum of waves with wave vectors of the field's spectrum: Gaussian in the limit of many, with the exact
// covariance for any number (random Fourier features). Row-major over the whole grid.
std::vector<float> random_field(const Displacement& displacement, const VoxelVector& origin, int size) {
  const auto side = static_cast<std::size_t>(size);
  std::vector<float> field(side * side * side), real(side), imaginary(side);
  for (const auto& [kz, ky, kx, offset] : displacement.waves) {
    for (std::size_t x = 0; x < side; ++x) {
      const double angle = kx * (static_cast<double>(x) - origin[2]);
      real[x] = static_cast<float>(std::cos(angle));
      imaginary[x] = static_cast<float>(std::sin(angle));
    }
    for (std::size_t z = 0; z < side; ++z)
      for (std::size_t y = 0; y < side; ++y) {
        const double angle =
            kz * (static_cast<double>(z) - origin[0]) + ky * (static_cast<double>(y) - origin[1]) + offset;
        const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
        float* row = &field[(z * side + y) * side];
        for (std::size_t x = 0; x < side; ++x) row[x] += c * real[x] - s * imaginary[x];
      }
  }
  const auto scale = static_cast<float>(std::sqrt(2.0 / static_cast<double>(displacement.waves.size())));
  for (float& value : field) value *= scale;
  return field;
}

struct Statistics {
  double weight = 0, sum = 0, squares = 0;
  void add(double w, double value) {
    weight += w;
    sum += w * value;
    squares += w * value * value;
  }
  double mean() const { return weight > 0 ? sum / weight : 0; }
  double rms() const { return weight > 0 ? std::sqrt(std::max(0.0, squares / weight - mean() * mean())) : 0; }
};

// Subtracts the mean over the crystal and scales to `rms` (any, when below 0).
void standardize(std::vector<double>& values, const std::vector<float>& amplitude, double rms) {
  Statistics statistics;
  for (std::size_t i = 0; i < values.size(); ++i) statistics.add(amplitude[i], values[i]);
  const double scale = rms < 0 ? 1 : statistics.rms() > 0 ? rms / statistics.rms() : 0;
  for (double& value : values) value = scale * (value - statistics.mean());
}

}  // namespace

Displacement draw_displacement(RandomStream& random, const CrystalShape& shape,
                               const DisplacementSettings& settings) {
  Displacement drawn;
  drawn.rms = draw_uniform(random, settings.rms);
  drawn.polynomial_weight = random.uniform();
  drawn.field_weight = random.uniform();
  drawn.relaxation_weight = 0.5 * random.uniform();
  for (double& coefficient : drawn.polynomial) coefficient = random.normal();
  drawn.correlation = draw_uniform(random, settings.correlation) * shape.diameter;
  for (std::size_t i = 0; i < wave_count; ++i) {
    std::array<double, 4> wave;
    for (std::size_t axis = 0; axis < 3; ++axis) wave[axis] = random.normal() / drawn.correlation;
    wave[3] = random.uniform(0, 2 * pi);
    drawn.waves.push_back(wave);
  }
  drawn.scattering = draw_direction(random);
  drawn.relaxation_depth = random.uniform(0.05, 0.15) * shape.diameter;
  drawn.dislocation = draw_dislocation(random, shape, settings.dislocations);
  return drawn;
}

CrystalObject render(const CrystalShape& shape, const Displacement& displacement, int size) {
  const auto side = static_cast<std::size_t>(size);
  CrystalObject object{size, std::vector<float>(side * side * side), std::vector<float>(side * side * side)};
  std::vector<double> polynomial(object.phase.size()), relaxation(polynomial), winding(polynomial);
  const std::vector<float> field = random_field(displacement, shape.origin, size);
  const double radius = shape.diameter / 2;
  for (std::size_t i = 0; i < object.phase.size(); ++i) {
    const VoxelVector r{static_cast<double>(i / (side * side)) - shape.origin[0],
                        static_cast<double>(i / side % side) - shape.origin[1],
                        static_cast<double>(i % side) - shape.origin[2]};
    object.amplitude[i] = static_cast<float>(std::clamp(shape.depth(r) + 0.5, 0.0, 1.0));
    if (object.amplitude[i] == 0) continue;
    polynomial[i] = polynomial_value(displacement.polynomial, {r[0] / radius, r[1] / radius, r[2] / radius});
    relaxation[i] = relaxation_value(shape, displacement, r);
    winding[i] = dislocation_phase(displacement.dislocation, r);
  }
  standardize(polynomial, object.amplitude, displacement.polynomial_weight);
  standardize(relaxation, object.amplitude, displacement.relaxation_weight);
  std::vector<double> smooth(field.begin(), field.end());
  standardize(smooth, object.amplitude, displacement.field_weight);
  for (std::size_t i = 0; i < smooth.size(); ++i) smooth[i] += polynomial[i] + relaxation[i];
  standardize(smooth, object.amplitude, displacement.rms);
  for (std::size_t i = 0; i < smooth.size(); ++i) smooth[i] += winding[i];
  standardize(smooth, object.amplitude, -1);
  for (std::size_t i = 0; i < smooth.size(); ++i)
    object.phase[i] = object.amplitude[i] > 0 ? static_cast<float>(std::remainder(smooth[i], 2 * pi)) : 0.0f;
  return object;
}

}  // namespace superstep::data
