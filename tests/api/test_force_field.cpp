// Trained force fields through the C++ and the C interface: forces are the energy's gradient, the virial is
// its derivative by strain, and what makes no sense is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "superstep/c_api.h"
#include "superstep/superstep.h"
#include "tests/keep_written.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;
using Box = std::array<double, 9>;

class ForceFieldApi : public ::testing::Test {
 protected:
  // Once for all: in f64, so that differences of energies are those of the forces.
  static void SetUpTestSuite() {
    folder = fs::temp_directory_path() / ("superstep_force_field_" + std::to_string(getpid()));
    fs::create_directories(folder);
    TrainingSettings settings{.model = "deepmd", .samples = 40, .batch = 4, .threads = 1, .epochs = 1};
    settings.settings.options = {"embedding=4,8", "axis=4", "fitting=8,8", "precision=f64"};
    settings.out = folder / "copper";
    train(settings);
    settings.model = "schnet";
    settings.settings.options = {"width=8", "blocks=1"};
    settings.out = folder / "water";
    train(settings);
  }
  static void TearDownTestSuite() {
    keep_written(folder, "ForceFieldApi");
    fs::remove_all(folder);
  }
  static fs::path folder;

  // Four atoms of copper near their places in a box of 3.7 A: smaller than the cutoff.
  const std::vector<int> copper_{29, 29, 29, 29};
  const std::vector<double> places_{0.1, 0, 0, 0, 1.8, 1.9, 1.8, 0.05, 1.8, 1.85, 1.8, -0.1};
  const Box box_{3.7, 0, 0, 0.1, 3.6, 0, 0, 0.05, 3.65};
};
fs::path ForceFieldApi::folder;

double energy(ForceField& field, const std::vector<double>& places, const Box& box) {
  return field.evaluate(places, box).energy;
}

TEST_F(ForceFieldApi, ForcesAreTheGradientOfTheEnergy) {
  ForceField field(folder / "copper", copper_);
  EXPECT_EQ(field.elements(), copper_);
  EXPECT_EQ(field.elements_it_knows(), std::vector<int>{29});
  EXPECT_EQ(field.cutoff(), 6);
  const Forces found = field.evaluate(places_, box_);
  constexpr double step = 1e-4;
  double largest = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    std::vector<double> forward = places_, backward = places_;
    forward[i] += step, backward[i] -= step;
    const double slope = (energy(field, forward, box_) - energy(field, backward, box_)) / (2 * step);
    EXPECT_NEAR(found.forces[i], -slope, 1e-6) << i;
    largest = std::max(largest, std::abs(slope));
  }
  EXPECT_GT(largest, 1e-3) << "something pulls";
}

TEST_F(ForceFieldApi, TheVirialIsTheDerivativeByStrain) {
  ForceField field(folder / "copper", copper_);
  const Box virial = field.evaluate(places_, box_).virial.value();
  constexpr double step = 1e-4;
  // Rows of `matrix` times (1 + strain).
  const auto strained = [](auto matrix, std::size_t row, std::size_t column, double strain) {
    for (std::size_t i = 0; i + 2 < matrix.size(); i += 3) matrix[i + column] += strain * matrix[i + row];
    return matrix;
  };
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column) {
      const auto at = [&](double strain) {
        return energy(field, strained(places_, row, column, strain), strained(box_, row, column, strain));
      };
      EXPECT_NEAR(virial[3 * row + column], -(at(step) - at(-step)) / (2 * step), 1e-5) << row << column;
    }
}

TEST_F(ForceFieldApi, TheSameLatticeHasTheSameEnergy) {
  ForceField field(folder / "copper", copper_);
  const double expected = energy(field, places_, box_);
  const Box left_handed{box_[3], box_[4], box_[5], box_[0], box_[1], box_[2], box_[6], box_[7], box_[8]};
  EXPECT_NEAR(energy(field, places_, left_handed), expected, 1e-10);
  std::vector<double> moved = places_;
  moved[0] += box_[0], moved[1] += box_[1], moved[2] += box_[2];
  EXPECT_NEAR(energy(field, moved, box_), expected, 1e-10);
}

template <class Call>
void expect_refused(ErrorCode code, const std::string& part, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE((error.where() + " " + error.message()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(ForceFieldApi, WhatMakesNoSenseIsRefused) {
  ForceField field(folder / "copper", copper_);
  expect_refused(ErrorCode::not_found, "nowhere", [&] { ForceField(folder / "nowhere", copper_); });
  expect_refused(ErrorCode::invalid_argument, "atom 2 (Al)", [&] {
    ForceField(folder / "copper", {29, 13});
  });
  expect_refused(ErrorCode::invalid_argument, "no atoms", [&] { ForceField(folder / "copper", {}); });
  expect_refused(ErrorCode::invalid_argument, "threads", [&] { ForceField(folder / "copper", copper_, -1); });
  expect_refused(ErrorCode::invalid_argument, "3 coordinates",
                 [&] { field.evaluate(std::vector<double>(3)); });
  expect_refused(ErrorCode::invalid_argument, "without volume", [&] {
    field.evaluate(places_, Box{1, 0, 0, 2, 0, 0, 0, 0, 1});
  });
  expect_refused(ErrorCode::invalid_argument, "cell", [&] { field.evaluate(places_, Box{NAN}); });
  std::vector<double> together = places_;
  std::copy_n(places_.begin(), 3, together.begin() + 3);
  expect_refused(ErrorCode::bad_file, "at one place", [&] { field.evaluate(together, box_); });
  std::vector<double> lost = places_;
  lost[4] = INFINITY;
  expect_refused(ErrorCode::bad_file, "finite", [&] { field.evaluate(lost, box_); });
  EXPECT_NO_THROW(field.evaluate(places_, box_)) << "it goes on";
}

TEST_F(ForceFieldApi, AModelOfOpenSpaceTakesNoBoxAndGivesNoVirial) {
  ForceField field(folder / "water", {8, 1, 1});
  const std::vector<double> molecule{0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0};
  const Forces found = field.evaluate(molecule);
  EXPECT_FALSE(found.virial);
  EXPECT_EQ(found.forces.size(), 9U);
  for (int axis = 0; axis < 3; ++axis)
    EXPECT_NEAR(found.forces[axis] + found.forces[3 + axis] + found.forces[6 + axis], 0, 1e-4);
  expect_refused(ErrorCode::unsupported, "periodic box", [&] { field.evaluate(molecule, box_); });
}

TEST_F(ForceFieldApi, TheCInterfaceSaysTheSame) {
  const std::vector<std::int32_t> elements(copper_.begin(), copper_.end());
  const std::string run = (folder / "copper").string();
  superstep_force_field* field = nullptr;
  ASSERT_EQ(superstep_force_field_open(run.c_str(), elements.data(), 4, 1, &field), SUPERSTEP_OK);
  double energy = 0, cutoff = 0;
  std::vector<double> forces(12);
  Box virial{};
  EXPECT_EQ(superstep_force_field_cutoff(field, &cutoff), SUPERSTEP_OK);
  EXPECT_EQ(cutoff, 6);
  ASSERT_EQ(superstep_force_field_evaluate(field, places_.data(), box_.data(), &energy, forces.data(),
                                           virial.data()),
            SUPERSTEP_OK);
  const Forces expected = ForceField(folder / "copper", copper_).evaluate(places_, box_);
  EXPECT_EQ(energy, expected.energy);
  EXPECT_EQ(forces, expected.forces);
  EXPECT_EQ(virial, *expected.virial);
  EXPECT_EQ(superstep_force_field_evaluate(field, places_.data(), nullptr, &energy, forces.data(), nullptr),
            SUPERSTEP_OK);
  EXPECT_EQ(superstep_force_field_evaluate(field, nullptr, nullptr, &energy, forces.data(), nullptr),
            SUPERSTEP_INVALID_ARGUMENT);
  superstep_force_field_free(field);
  superstep_force_field_free(nullptr);

  const std::string water = (folder / "water").string();
  const std::int32_t molecule[] = {8, 1, 1};
  ASSERT_EQ(superstep_force_field_open(water.c_str(), molecule, 3, 1, &field), SUPERSTEP_OK);
  EXPECT_EQ(
      superstep_force_field_evaluate(field, places_.data(), nullptr, &energy, forces.data(), virial.data()),
      SUPERSTEP_UNSUPPORTED);
  superstep_force_field_free(field);
}

}  // namespace
}  // namespace superstep
