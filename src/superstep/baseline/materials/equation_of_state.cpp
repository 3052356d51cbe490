#include "superstep/baseline/materials/equation_of_state.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::baseline {
namespace {

constexpr double gigapascals = 160.2176634;  // in one eV/A^3 (CODATA 2018)
constexpr int atoms_face_centred = 4;        // of the cubic cell

// Coefficients of a cubic in u = x - middle: u is small, and its powers are told apart.
Eigen::Vector4d fit_cubic(std::span<const double> x, double middle, std::span<const double> y) {
  Eigen::MatrixXd powers(static_cast<Eigen::Index>(x.size()), 4);
  for (Eigen::Index i = 0; i < powers.rows(); ++i) {
    const double u = x[static_cast<std::size_t>(i)] - middle;
    powers.row(i) << 1, u, u * u, u * u * u;
  }
  return powers.colPivHouseholderQr().solve(
      Eigen::Map<const Eigen::VectorXd>(y.data(), static_cast<Eigen::Index>(y.size())));
}

// Where b + 2 c u + 3 d u^2 is zero and rises; NaN where it does not.
double minimum_of(const Eigen::Vector4d& cubic) {
  const double b = cubic[1], c = cubic[2], d = cubic[3];
  const double root = std::sqrt(c * c - 3 * b * d);
  return -b / (c + root);
}

}  // namespace

CrystalAtRest fit_equation_of_state(std::span<const double> volumes, std::span<const double> energies,
                                    int atoms_a_cell) {
  if (volumes.size() < 4 || volumes.size() != energies.size())
    throw Error(ErrorCode::invalid_argument, "an equation of state takes four volumes and energies or more");
  std::vector<double> x;
  for (const double volume : volumes) x.push_back(std::pow(volume, -2.0 / 3));
  const auto [low, high] = std::ranges::minmax(x);
  const double middle = (low + high) / 2;
  const Eigen::Vector4d cubic = fit_cubic(x, middle, energies);
  const double u = minimum_of(cubic), at = middle + u;
  if (!(at >= low && at <= high))
    throw Error(ErrorCode::diverged, "the energies have no minimum between these volumes", {},
                "take volumes around the crystal at rest");
  const double volume = std::pow(at, -1.5);
  // E' is zero there: V E'' = V (dx/dV)^2 d2E/dx2, dx/dV = -2/3 V^(-5/3).
  const double slope = -2.0 / 3 * std::pow(volume, -5.0 / 3);
  return {.lattice = std::cbrt(atoms_a_cell * volume),
          .energy = cubic[0] + u * (cubic[1] + u * (cubic[2] + u * cubic[3])),
          .bulk_modulus = gigapascals * volume * slope * slope * (2 * cubic[2] + 6 * cubic[3] * u)};
}

CrystalAtRest face_centred_at_rest(FunctionRef<double(double lattice)> energy, double guess, double reach,
                                   int points) {
  std::vector<double> volumes, energies;
  for (int i = 0; i < points; ++i) {
    const double share = points > 1 ? 2.0 * i / (points - 1) - 1 : 0;
    const double lattice = guess * (1 + reach * share);
    volumes.push_back(lattice * lattice * lattice / atoms_face_centred);
    energies.push_back(energy(lattice));
  }
  return fit_equation_of_state(volumes, energies, atoms_face_centred);
}

}  // namespace superstep::baseline
