#include <gtest/gtest.h>

#include "superstep/sampling/leapfrog.h"
#include "tests/sampling/densities.h"

namespace superstep::sampling {
namespace {

const std::vector<double> masses = {1, 0.5, 2};

PhasePoint begin() {
  Wavy density;
  PhasePoint point(3);
  point.position = {0.3, -1.1, 0.7};
  point.momentum = {0.9, 0.4, -1.3};
  evaluate(density, point);
  return point;
}

TEST(Leapfrog, GoesBackTheWayItCame) {
  Wavy density;
  PhasePoint point = begin();
  for (int i = 0; i < 500; ++i) leapfrog(density, masses, 0.05, point);
  EXPECT_GT(std::abs(point.position[0] - begin().position[0]), 1e-3) << "it has gone somewhere";
  for (double& p : point.momentum) p = -p;
  for (int i = 0; i < 500; ++i) leapfrog(density, masses, 0.05, point);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(point.position[i], begin().position[i], 1e-10);
    EXPECT_NEAR(point.momentum[i], -begin().momentum[i], 1e-10);
  }
}

// The largest error of the energy on the way through the same time.
double error_of_energy(double step) {
  Wavy density;
  PhasePoint point = begin();
  const double first = energy(point, masses);
  double largest = 0;
  for (int i = 0; i < std::lround(4 / step); ++i) {
    leapfrog(density, masses, step, point);
    largest = std::max(largest, std::abs(energy(point, masses) - first));
  }
  return largest;
}

TEST(Leapfrog, HasAnErrorOfSecondOrder) {
  for (const double step : {0.08, 0.04, 0.02})
    EXPECT_NEAR(error_of_energy(step) / error_of_energy(step / 2), 4, 0.2) << step;
}

TEST(Leapfrog, DrawsMomentaOfTheMass) {
  RandomStream random(1);
  const std::vector<double> inverse_mass = {4, 0.25};
  std::vector<double> momentum(2);
  double first = 0, second = 0;
  constexpr int count = 40000;
  for (int i = 0; i < count; ++i) {
    draw_momentum(random, inverse_mass, momentum);
    first += momentum[0] * momentum[0], second += momentum[1] * momentum[1];
  }
  EXPECT_NEAR(first / count, 0.25, 0.01);
  EXPECT_NEAR(second / count, 4, 0.15);
}

}  // namespace
}  // namespace superstep::sampling
