#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/file/csv.h"
#include "superstep/physics/flow/wall_flow.h"
#include "superstep/physics/flow/wall_generator.h"
#include "superstep/physics/flow/wall_law.h"
#include "superstep/physics/generator.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::unique_ptr<Generator> make(const std::vector<std::string>& settings) {
  const GeneratorEntry& entry = find_generator("wallmodel");
  return entry.make(Options(entry.options, settings));
}

TEST(WallLaw, ReichardtsProfileHasItsValues) {
  const double y[] = {1, 5, 10, 30, 100, 300, 1000},
               u[] = {1.009, 4.915, 8.420, 13.701, 17.083, 19.789, 22.785};
  for (int k = 0; k < 7; ++k) EXPECT_NEAR(reichardt(y[k]), u[k], 5.1e-4) << y[k];
  for (double at : {0.5, 4.0, 20.0, 200.0})
    EXPECT_NEAR(reichardt_slope(at), (reichardt(at + 1e-5) - reichardt(at - 1e-5)) / 2e-5, 1e-7);
}

TEST(WallLaw, InversionFindsTheFrictionVelocity) {
  for (double friction : {1e-4, 0.003, 0.05, 0.4}) {
    const double height = 0.1, viscosity = 1e-4;
    const double speed = friction * reichardt(height * friction / viscosity);
    EXPECT_NEAR(friction_velocity(speed, height, viscosity), friction, 1e-10 * friction);
  }
  EXPECT_EQ(friction_velocity(0, 1, 1), 0);
  expect_error(ErrorCode::invalid_argument, {"the height is -1"}, [] { friction_velocity(1, -1, 1); });
}

TEST(WallColumn, LaminarFlowIsLinearAndParabolic) {
  // So viscous that the eddy viscosity is nothing: tau = mu u / h - dp/dx h / 2.
  const WallColumn couette{.height = 0.2, .speed = 0.7, .density = 1.3, .viscosity = 50};
  EXPECT_NEAR(solve_wall_column(couette).shear_stress, 1.3 * 50 * 0.7 / 0.2, 1e-4 * 227);
  WallColumn poiseuille = couette;
  poiseuille.pressure_gradient = 400;
  EXPECT_NEAR(solve_wall_column(poiseuille).shear_stress, 1.3 * 50 * 0.7 / 0.2 - 400 * 0.1, 1e-4 * 187);
}

TEST(WallColumn, EquilibriumIsNearReichardtsProfile) {
  for (double speed : {0.5, 0.8}) {
    const WallColumn column{.height = 0.1, .speed = speed};
    const double friction = friction_velocity(speed, 0.1, column.viscosity);
    EXPECT_NEAR(solve_wall_column(column).shear_stress, friction * friction, 0.1 * friction * friction);
  }
}

TEST(WallColumn, ConvergesWithTheGridAndBalancesMomentum) {
  WallColumn column{
      .height = 0.1, .speed = 0.6, .density = 1.2, .pressure_gradient = 0.01, .acceleration = 0.02};
  const double coarse = solve_wall_column(column, 24).shear_stress,
               middle = solve_wall_column(column, 48).shear_stress,
               fine = solve_wall_column(column, 96).shear_stress;
  EXPECT_NEAR((coarse - middle) / (middle - fine), 4, 1.2);  // second order
  EXPECT_NEAR(middle, fine, 2e-3 * fine);
  // Stress at the point = stress at the wall + everything pushed in between.
  const WallProfile profile = solve_wall_column(column, 400);
  double pushed = 0;
  for (std::size_t j = 1; j < profile.y.size(); ++j) {
    const auto source = [&](std::size_t k) { return 0.01 + 1.2 * 0.02 * profile.u[k] * profile.u[k] / 0.6; };
    pushed += (source(j) + source(j - 1)) / 2 * (profile.y[j] - profile.y[j - 1]);
  }
  const double friction = std::sqrt(profile.shear_stress / 1.2),
               damping = 1 - std::exp(-0.1 * friction / column.viscosity / 17);
  const double viscosity = 1.2 * (column.viscosity + 0.4 * 0.1 * friction * damping * damping);
  EXPECT_NEAR(viscosity * profile.slope_at_height, profile.shear_stress + pushed,
              2e-3 * profile.shear_stress);
}

TEST(WallFlow, GradientsAreThoseOfTheVelocityAndTheWallIsAtRest) {
  RandomStream random(1);
  const WallFlow flow(random, 1);
  const Vector3 p{8.3, 0.2, -0.7};
  const WallPoint point = flow.at(p);
  for (std::size_t j = 0; j < 3; ++j) {
    Vector3 up = p, down = p;
    up[j] += 1e-3, down[j] -= 1e-3;
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(point.gradient[i][j], (flow.at(up).velocity[i] - flow.at(down).velocity[i]) / 2e-3, 2e-3);
  }
  EXPECT_NEAR(flow.at({5, 0, 1}).velocity[0], 0, 1e-9);
  EXPECT_NEAR(flow.at({5, 0, 1}).velocity[1], 0, 1e-9);
}

TEST(WallFlow, FrictionIsLogNormalAboutItsMeanAndDensityFollowsTheBlowing) {
  double mean = 0, spread = 0, coolant[2] = {};
  for (std::uint64_t k = 0; k < 40; ++k) {
    for (int blown = 0; blown < 2; ++blown) {
      RandomStream random(2, k);
      const WallFlow flow(random, blown ? 1.5 : 0);
      coolant[blown] += flow.at({5, 0.3, 0}).density / 40;
      if (blown) continue;
      for (int point = 0; point < 25; ++point) {
        const double u = flow.friction(4 + 0.6 * point, -2 + 0.15 * point) / wall_friction_velocity;
        mean += u / 1000, spread += std::pow(std::log(u), 2) / 1000;
      }
    }
  }
  EXPECT_NEAR(mean, 1, 0.03);
  EXPECT_NEAR(std::sqrt(spread), 0.2, 0.02);
  EXPECT_NEAR(coolant[0], 1, 1e-12);
  EXPECT_GT(coolant[1], 1.2);
}

TEST(WallGenerator, SameBitsOnAnyNumberOfThreads) {
  ThreadPool one(1), three(3);
  for (const char* level : {"level=a", "level=b"}) {
    const auto generator = make({level});
    // Across the border of two snapshots.
    const auto a = generate_in_memory(*generator, 3, 4090, 12, one),
               b = generate_in_memory(*generator, 3, 4090, 12, three);
    for (std::size_t f = 0; f < a.size(); ++f)
      EXPECT_EQ(std::memcmp(a[f].bytes(), b[f].bytes(), a[f].byte_count()), 0) << level;
  }
}

TEST(WallGenerator, LevelBIsTheSolutionOfItsFeatures) {
  ThreadPool pool(2);
  const auto samples = generate_in_memory(*make({"level=b", "noise=0"}), 4, 0, 50, pool);
  for (std::size_t k = 0; k < 50; ++k) {
    const auto f = samples[0].as<float>().subspan(16 * k, 16);
    const double speed = std::hypot(f[0], f[2]), c = f[0] / speed, s = f[2] / speed;
    const WallColumn column{.height = 0.1,
                            .speed = speed,
                            .density = f[15],
                            .pressure_gradient = f[12] * c + f[14] * s,
                            .acceleration = f[3] + f[11]};
    const WallProfile profile = solve_wall_column(column);
    EXPECT_NEAR(samples[1].at(static_cast<std::int64_t>(k)), profile.shear_stress * c,
                1e-5 * profile.shear_stress);
    EXPECT_NEAR(std::hypot(f[4], f[10]), std::abs(profile.slope_at_height),
                1e-4 * std::abs(profile.slope_at_height) + 1e-6);
  }
}

TEST(WallGenerator, WritesATableOfNamedFeatures) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  make({"level=a", "stencil=3"})->write({folder / "wall.csv", 1, 5, &pool});
  const auto samples = generate_in_memory(*make({"level=a", "stencil=3"}), 1, 0, 5, pool);
  CsvReader table(folder / "wall.csv");
  EXPECT_EQ(table.header().size(), 4u + 48 + 1);
  ASSERT_TRUE(table.next());
  EXPECT_EQ(static_cast<float>(table.number(table.column("dw_dy"))), samples[0].as<float>()[10]);
  EXPECT_EQ(static_cast<float>(table.number(table.column("rho_2"))), samples[0].as<float>()[47]);
  EXPECT_EQ(static_cast<float>(table.number(table.column("tau"))), samples[1].as<float>()[0]);
  expect_error(ErrorCode::invalid_argument, {"stencil=1"}, [] { make({"level=b", "stencil=3"}); });
}

}  // namespace
}  // namespace superstep::data
