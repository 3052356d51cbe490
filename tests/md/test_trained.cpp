// Trained models that move atoms: their forces are those of the run, and what they move keeps its energy.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/md/trained/trained.h"
#include "superstep/run/serve/trained_forces.h"
#include "superstep/run/train/train.h"
#include "tests/expect_error.h"
#include "tests/md/atoms.h"
#include "tests/scratch.h"

namespace superstep::md {
namespace {

class Deepmd : public ::testing::Test {
 protected:
  void SetUp() override {
    run::train({.workload = "deepmd",
                .model_options = {"embedding=4,8", "axis=4", "fitting=8,8", "precision=mixed"},
                .samples = 40,
                .batch = 4,
                .epochs = 2},
               {.out = folder_ / "run"});
  }
  data::Configuration crystal() const {
    Structure start = make_lattice("fcc:Cu:3.61:2x2x2", 1);
    return rattled(start.atoms, 0.05, 3);
  }
  const ScratchFolder folder_;
};

TEST_F(Deepmd, ForcesAreThoseOfTheRun) {
  data::Configuration atoms = crystal();
  const auto field = open_trained(folder_ / "run", atoms, 1);
  const Evaluation found = evaluated(*field, atoms);
  run::TrainedForces alone(folder_ / "run", atoms.elements);
  const data::Labels expected = alone.evaluate(atoms);
  EXPECT_EQ(found.energy, *expected.energy);
  EXPECT_EQ(found.forces, expected.forces);
  EXPECT_EQ(found.virial, *expected.virial);
  EXPECT_TRUE(field->takes_box() && field->gives_virial());
}

// The error of a step's energy falls fourfold when the step is halved; forces that were not the energy's
// gradient would leave a drift that does not.
TEST_F(Deepmd, EnergyIsKeptTheBetterTheShorterTheStep) {
  data::Configuration atoms = crystal();
  const auto field = open_trained(folder_ / "run", atoms, 1);
  ThreadPool pool(1);
  const auto worst_error = [&](double timestep) {
    Dynamics dynamics(*field, {.ensemble = Ensemble::nve, .timestep = timestep}, 0.4, pool);
    State state = started(dynamics, atoms, 300);
    const double begun = dynamics.read(state).conserved;
    double worst = 0;
    for (double time = 0; time < 64; time += timestep) {
      dynamics.step(state, false);
      worst = std::max(worst, std::abs(dynamics.read(state).conserved - begun));
    }
    return worst;
  };
  const double long_steps = worst_error(8), short_steps = worst_error(4);
  EXPECT_GT(long_steps, 0);
  EXPECT_LT(short_steps, 0.4 * long_steps);
}

TEST_F(Deepmd, ElementsThatItDoesNotKnowAreNamed) {
  data::Configuration atoms = crystal();
  atoms.elements[1] = 8;
  expect_error(ErrorCode::invalid_argument, {"atom 2 (O)", "does not know"},
               [&] { open_trained(folder_ / "run", atoms, 1); });
}

}  // namespace
}  // namespace superstep::md
