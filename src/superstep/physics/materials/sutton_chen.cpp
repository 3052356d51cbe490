#include "superstep/physics/materials/sutton_chen.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::data {
namespace {

double power(double x, int exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, x *= x)
    if (exponent & 1) result *= x;
  return result;
}

void add_outer(std::array<double, 9>& virial, double factor, const Cartesian& r) {
  const double v[3] = {r.x, r.y, r.z};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column)
      virial[3 * row + column] += factor * v[row] * v[column];
}

// What the first pass over the pairs leaves for the second.
struct PairTerm {
  double inverse_r, repulsion_slope, density_slope;  // of V and of the density, per A
  Cartesian r;
  int i, j;
};

}  // namespace

std::span<const SuttonChen> sutton_chen_metals() {
  static const std::vector<SuttonChen> metals = {
      {"Al", 7, 6, 3.3147e-2, 16.399, 4.05},  {"Ni", 9, 6, 1.5707e-2, 39.432, 3.52},
      {"Cu", 9, 6, 1.2382e-2, 39.432, 3.61},  {"Pd", 12, 7, 4.1790e-3, 108.27, 3.89},
      {"Ag", 12, 6, 2.5415e-3, 144.41, 4.09}, {"Pt", 10, 8, 1.9833e-2, 34.408, 3.92},
      {"Au", 10, 8, 1.2793e-2, 34.408, 4.08}};
  return metals;
}

const SuttonChen& find_sutton_chen(std::string_view symbol) {
  std::vector<std::string> known;
  for (const SuttonChen& metal : sutton_chen_metals()) {
    if (metal.symbol == symbol) return metal;
    known.push_back(metal.symbol);
  }
  throw Error(ErrorCode::invalid_argument, "no Sutton-Chen parameters for this element", std::string(symbol),
              unknown_name_hint(symbol, known));
}

double SmoothCutoff::value(double r) const {
  if (r >= cutoff) return 0;
  if (r <= start) return 1;
  const double x = (r - start) / (cutoff - start);
  return x * x * x * (-6 * x * x + 15 * x - 10) + 1;
}

double SmoothCutoff::slope(double r) const {
  if (r >= cutoff || r <= start) return 0;
  const double x = (r - start) / (cutoff - start);
  return -30 * x * x * (x - 1) * (x - 1) / (cutoff - start);
}

Evaluation evaluate_sutton_chen(const SuttonChen& metal, const SmoothCutoff& cutoff,
                                std::span<const Cartesian> positions, std::span<const NeighborPair> pairs) {
  Evaluation result;
  result.forces.resize(positions.size());
  std::vector<double> density(positions.size(), 0.0);
  std::vector<PairTerm> terms;
  terms.reserve(pairs.size());
  double repulsion = 0;
  for (const auto& [i, j, shift] : pairs) {
    const Cartesian r =
        positions[static_cast<std::size_t>(j)] + shift - positions[static_cast<std::size_t>(i)];
    const double square = dot(r, r);
    if (square >= cutoff.cutoff * cutoff.cutoff) continue;
    const double inverse = 1 / std::sqrt(square), distance = square * inverse;
    const double v = power(metal.a * inverse, metal.n), rho = power(metal.a * inverse, metal.m);
    const double f = cutoff.value(distance), slope = cutoff.slope(distance);
    repulsion += v * f;
    density[static_cast<std::size_t>(i)] += rho * f;
    density[static_cast<std::size_t>(j)] += rho * f;
    terms.push_back(
        {inverse, v * (slope - metal.n * inverse * f), rho * (slope - metal.m * inverse * f), r, i, j});
  }
  double embedding = 0;
  std::vector<double> inverse_root(density.size());
  for (std::size_t i = 0; i < density.size(); ++i) {
    const double root = std::sqrt(density[i]);
    embedding += root;
    inverse_root[i] = root > 0 ? 1 / root : 0;
  }
  result.energy = metal.epsilon * (repulsion - metal.c * embedding);
  for (const PairTerm& term : terms) {
    const auto i = static_cast<std::size_t>(term.i), j = static_cast<std::size_t>(term.j);
    const double slope =
        metal.epsilon *
        (term.repulsion_slope - metal.c / 2 * (inverse_root[i] + inverse_root[j]) * term.density_slope);
    const Cartesian force = slope * term.inverse_r * term.r;  // on i
    result.forces[i] += force;
    result.forces[j] -= force;
    add_outer(result.virial, -slope * term.inverse_r, term.r);
  }
  return result;
}

double sutton_chen_lattice_energy(const SuttonChen& metal, double lattice, double cutoff) {
  const int reach = static_cast<int>(std::ceil(cutoff / lattice * 2)) + 1;
  const double limit = 4 * cutoff * cutoff / (lattice * lattice) * (1 + 1e-12);
  double repulsion = 0, density = 0;
  // Sites of the lattice in units of half a lattice constant: the sum of the three coordinates is even.
  for (int x = -reach; x <= reach; ++x)
    for (int y = -reach; y <= reach; ++y)
      for (int z = -reach; z <= reach; ++z) {
        const int square = x * x + y * y + z * z;
        if ((x + y + z) % 2 != 0 || square == 0 || square > limit) continue;
        const double ratio = metal.a / (lattice / 2 * std::sqrt(square));
        repulsion += power(ratio, metal.n);
        density += power(ratio, metal.m);
      }
  return metal.epsilon * (repulsion / 2 - metal.c * std::sqrt(density));
}

Configuration face_centred_cubic(int element, double lattice, int cells) {
  constexpr Cartesian basis[] = {{0, 0, 0}, {0, 0.5, 0.5}, {0.5, 0, 0.5}, {0.5, 0.5, 0}};
  Configuration crystal;
  const double edge = lattice * cells;
  crystal.cell = Cell{{edge, 0, 0}, {0, edge, 0}, {0, 0, edge}};
  for (int x = 0; x < cells; ++x)
    for (int y = 0; y < cells; ++y)
      for (int z = 0; z < cells; ++z)
        for (const Cartesian& site : basis)
          crystal.positions.push_back(lattice * (Cartesian{double(x), double(y), double(z)} + site));
  crystal.elements.assign(crystal.positions.size(), element);
  return crystal;
}

}  // namespace superstep::data
