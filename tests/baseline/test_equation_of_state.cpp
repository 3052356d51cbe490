// Crystals at rest: curves that are known, and the lattice sums of Sutton and Chen.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "superstep/baseline/materials/equation_of_state.h"
#include "superstep/physics/materials/sutton_chen.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

using data::SuttonChen;

constexpr double gigapascals = 160.2176634;  // in one eV/A^3

// F. Birch's curve of third order by its own constants.
double birch(double volume, double rest, double energy, double bulk, double slope) {
  const double x = std::pow(rest / volume, 2.0 / 3);
  return energy + 9 * rest * bulk / 16 * (std::pow(x - 1, 3) * slope + (x - 1) * (x - 1) * (6 - 4 * x));
}

TEST(EquationOfState, FindsTheConstantsOfBirchsCurve) {
  std::vector<double> volumes, energies;
  for (double share = 0.94; share < 1.061; share += 0.02) {
    volumes.push_back(11.8 * share);
    energies.push_back(birch(11.8 * share, 11.8, -3.5, 140 / gigapascals, 4.7));
  }
  const CrystalAtRest found = fit_equation_of_state(volumes, energies, 4);
  EXPECT_NEAR(found.lattice, std::cbrt(4 * 11.8), 1e-7);
  EXPECT_NEAR(found.energy, -3.5, 1e-10);
  EXPECT_NEAR(found.bulk_modulus, 140, 1e-4);
}

// The minimum lies at the published lattice constant; the modulus is that of the second difference.
TEST(EquationOfState, HasTheMinimumOfTheLatticeSums) {
  for (const SuttonChen& metal : data::sutton_chen_metals()) {
    const auto energy = [&](double lattice) {
      // The same shells at every volume: a sharp end that stood still would let some come and go.
      return data::sutton_chen_lattice_energy(metal, lattice, 10.01 * lattice);
    };
    const CrystalAtRest found = face_centred_at_rest(energy, metal.a);
    EXPECT_NEAR(found.lattice, metal.a, 2e-3 * metal.a) << metal.symbol;
    EXPECT_NEAR(found.energy, energy(found.lattice), 1e-5) << metal.symbol;
    const double volume = std::pow(found.lattice, 3) / 4, step = 1e-3 * volume;
    const auto of_volume = [&](double v) { return energy(std::cbrt(4 * v)); };
    const double curvature =
        (of_volume(volume + step) - 2 * of_volume(volume) + of_volume(volume - step)) / (step * step);
    EXPECT_NEAR(found.bulk_modulus, gigapascals * volume * curvature, 2e-2 * found.bulk_modulus)
        << metal.symbol;
  }
}

TEST(EquationOfState, RefusesWhatHasNoMinimum) {
  const std::vector<double> volumes{10, 11, 12, 13, 14}, falls{5, 4, 3, 2, 1};
  expect_error(ErrorCode::diverged, {"no minimum between these volumes"},
               [&] { fit_equation_of_state(volumes, falls, 4); });
  expect_error(ErrorCode::invalid_argument, {"four volumes"},
               [&] { fit_equation_of_state(std::span(volumes).first(3), std::span(falls).first(3), 4); });
}

}  // namespace
}  // namespace superstep::baseline
