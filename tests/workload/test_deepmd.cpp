// The force field: what must not change its energies, what its forces and virials are, what is counted on
// data, what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/physics/materials/sutton_chen.h"
#include "superstep/physics/materials/water.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/materials/deepmd/deepmd.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::workload {
namespace {

using data::Cartesian;
using data::Configuration;

// In f64: differences of energies have the digits that forces are compared by.
const std::vector<std::string> small = {"types=Cu,Ni",   "atoms=20,20", "sel=30,30",   "cutoff=4",
                                        "embedding=4,8", "axis=3",      "fitting=6,6", "precision=f64"};

// A crystal of copper and nickel, its atoms off their sites.
Configuration alloy(std::uint64_t seed, double off = 0.15) {
  Configuration crystal = data::face_centred_cubic(29, 3.6, 2);
  RandomStream random(seed);
  for (std::size_t i = 0; i < crystal.positions.size(); ++i) {
    crystal.elements[i] = random.uniform() < 0.5 ? 29 : 28;
    crystal.positions[i] +=
        Cartesian{random.uniform(-off, off), random.uniform(-off, off), random.uniform(-off, off)};
  }
  return crystal;
}

struct Answers {
  std::vector<double> energies;
  std::vector<std::vector<Cartesian>> forces;
  std::vector<std::array<double, 9>> virials;
};

Cartesian vector_at(const Tensor& tensor, std::int64_t row) {
  return {tensor.at(3 * row), tensor.at(3 * row + 1), tensor.at(3 * row + 2)};
}

// Such as crystals have: without them what an untrained model says is next to nothing.
std::map<std::string, Tensor> statistics(const DeepmdSizes& sizes) {
  const Shape types{static_cast<std::int64_t>(sizes.elements.size())};
  return {{radial_mean, Tensor::full(sizes.outer, types, 0.05)},
          {radial_deviation, Tensor::full(sizes.outer, types, 0.04)},
          {angular_deviation, Tensor::full(sizes.outer, types, 0.03)}};
}

// What the untrained model says of configurations, forces in their order.
Answers answers(const std::vector<Configuration>& all, const std::vector<std::string>& options = small) {
  const Workload& workload = find_workload("deepmd");
  const DeepmdSizes sizes = deepmd_sizes(Options(workload.options, options));
  const graph::Graph model = build_model(workload, static_cast<std::int64_t>(all.size()), options);
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : model.inputs())
    inputs.emplace_back(model.type(id).element, model.type(id).shape);
  std::vector<PlacedFrame> frames;
  for (const Configuration& each : all) {
    frames.push_back(place_frame({each, {}}, "test", sizes));
    fill_frame(frames.back(), sizes, frames.size() - 1, inputs);
  }
  const std::vector<Tensor> out = op::evaluate(model, inputs, statistics(sizes)).outputs;
  Answers result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    result.energies.push_back(out[0].at(at));
    auto& forces = result.forces.emplace_back();
    for (const std::int64_t row : frames[i].row)
      forces.push_back(vector_at(out[1], at * sizes.all_atoms() + row));
    auto& virial = result.virials.emplace_back();
    for (std::int64_t k = 0; k < 9; ++k) virial[static_cast<std::size_t>(k)] = out[2].at(9 * at + k);
  }
  return result;
}

// About the axis (1, 2, 2) / 3 by an angle of cosine 0.28 and sine 0.96 (Rodrigues).
Cartesian turned(const Cartesian& v) {
  const Cartesian axis{1.0 / 3, 2.0 / 3, 2.0 / 3};
  return 0.28 * v + 0.96 * data::cross(axis, v) + (0.72 * data::dot(axis, v)) * axis;
}

template <class Change>
Configuration changed(Configuration atoms, Change change, bool with_cell = true) {
  for (Cartesian& p : atoms.positions) p = change(p);
  if (with_cell && atoms.cell)
    atoms.cell = data::Cell{change(atoms.cell->a), change(atoms.cell->b), change(atoms.cell->c)};
  return atoms;
}

TEST(Deepmd, HasThePublishedParameters) {
  const auto count = [](std::vector<std::string> options) {
    return count_parameters(build_model(find_workload("deepmd"), 1, options));
  };
  EXPECT_EQ(count({}), 6450 + 500641);
  EXPECT_EQ(count({"types=O,H", "atoms=64,128", "sel=46,92"}), 1014182);
  EXPECT_EQ(count({"types=O,H", "atoms=64,128", "sel=46,92", "precision=f64"}), 1014182);
  // Of one embedding, and of one fitting network.
  const graph::Graph water = build_model(find_workload("deepmd"), 1,
                                         std::vector<std::string>{"types=O,H", "atoms=2,4", "sel=46,92"});
  std::int64_t embedding = 0, fitting = 0;
  for (const graph::ValueId id : water.states()) {
    const graph::Value& state = water.value(id);
    if (state.name.starts_with("H.embed")) embedding += state.type.shape.element_count();
    if (state.name.starts_with("H.fit") || state.name.starts_with("H.energy"))
      fitting += state.type.shape.element_count();
  }
  EXPECT_EQ(embedding, 6450);
  EXPECT_EQ(fitting, 500641);
}

TEST(Deepmd, ANeighboursWeightIsThePublishedFunction) {
  const std::pair<double, double> known[] = {{1, .99347}, {2, .43554}, {3, .19492}, {4, .06418}, {5, .00898}};
  for (const auto& [r, s] : known) EXPECT_NEAR(switched_inverse(r, 0.5, 6), s, 5e-6) << r;
  EXPECT_EQ(switched_inverse(0.4, 0.5, 6), 1 / 0.4);
  EXPECT_EQ(switched_inverse(6, 0.5, 6), 0);
  EXPECT_EQ(switched_inverse(7, 0.5, 6), 0);
  EXPECT_LT(switched_inverse(6 - 1e-4, 0.5, 6), 1e-12);  // of third order in the distance to the cutoff
}

TEST(Deepmd, DoesNotSeeHowABoxLiesOrIsWritten) {
  const Configuration crystal = alloy(3);
  Configuration exchanged = crystal;  // an atom and the next of its kind
  const auto first = std::ranges::find(crystal.elements, 29) - crystal.elements.begin();
  const auto second = std::find(crystal.elements.begin() + first + 1, crystal.elements.end(), 29);
  const auto a = static_cast<std::size_t>(first),
             b = static_cast<std::size_t>(second - crystal.elements.begin());
  std::swap(exchanged.positions[a], exchanged.positions[b]);
  Configuration wrapped = crystal;  // the same crystal with one atom written in another box
  wrapped.positions[5] += crystal.cell->a - crystal.cell->c;
  const auto moved = [](Cartesian p) { return p + Cartesian{3, -2, 1}; };
  const Answers found = answers(
      {crystal, changed(crystal, turned), changed(crystal, moved, false), exchanged, wrapped, alloy(4)});
  const double energy = found.energies[0];
  for (const std::size_t same : {1u, 2u, 3u, 4u})
    EXPECT_NEAR(found.energies[same], energy, 1e-10 * std::abs(energy)) << same;
  EXPECT_GT(std::abs(found.energies[5] - energy), 1e-6 * std::abs(energy));
  Cartesian sum;
  double largest = 0;
  for (std::size_t i = 0; i < crystal.positions.size(); ++i) {
    EXPECT_LT(data::norm(found.forces[1][i] - turned(found.forces[0][i])), 1e-10);
    EXPECT_LT(data::norm(found.forces[2][i] - found.forces[0][i]), 1e-10);
    sum += found.forces[0][i], largest = std::max(largest, data::norm(found.forces[0][i]));
  }
  EXPECT_GT(largest, 1e-3);
  EXPECT_LT(data::norm(sum), 1e-10);
  EXPECT_LT(data::norm(found.forces[3][a] - found.forces[0][b]), 1e-10);
  EXPECT_GT(data::norm(found.forces[0][a] - found.forces[0][b]), 1e-4);
}

TEST(Deepmd, ForcesAreMinusTheSlopeOfTheEnergy) {
  constexpr double step = 1e-4;  // A
  const Configuration crystal = alloy(11);
  std::vector<Configuration> moved{crystal};
  for (const double by : {step, -step})
    for (const std::size_t i : {0u, 7u, 31u}) {
      moved.push_back(crystal);
      moved.back().positions[i] += Cartesian{0.6 * by, -0.8 * by, 0};
    }
  const Answers found = answers(moved);
  std::size_t k = 0;
  for (const std::size_t i : {0u, 7u, 31u}) {
    const double slope = (found.energies[1 + k] - found.energies[4 + k]) / (2 * step);
    const double along = data::dot(found.forces[0][i], {0.6, -0.8, 0});
    EXPECT_NEAR(along, -slope, 1e-6 * std::max(1.0, std::abs(along)));
    EXPECT_GT(std::abs(along), 1e-4);
    ++k;
  }
}

TEST(Deepmd, VirialsAreMinusTheSlopeByStrain) {
  constexpr double step = 1e-5;
  const Configuration crystal = alloy(12);
  std::vector<Configuration> strained{crystal};
  const auto stretch = [&](std::size_t row, std::size_t column, double by) {
    strained.push_back(changed(crystal, [&](Cartesian p) {
      const double from[] = {p.x, p.y, p.z};
      double to[] = {p.x, p.y, p.z};
      to[row] += by * from[column];
      return Cartesian{to[0], to[1], to[2]};
    }));
  };
  for (std::size_t k = 0; k < 9; ++k)
    for (const double by : {step, -step}) stretch(k / 3, k % 3, by);
  const Answers found = answers(strained);
  for (std::size_t k = 0; k < 9; ++k) {
    const double slope = (found.energies[1 + 2 * k] - found.energies[2 + 2 * k]) / (2 * step);
    EXPECT_NEAR(found.virials[0][k], -slope, 1e-5 * std::max(1.0, std::abs(slope))) << k;
  }
  EXPECT_GT(std::abs(found.virials[0][0]), 1e-2);
}

// Also of a box that is smaller than the cutoff, in which an atom is its own neighbour.
TEST(Deepmd, ARepeatedBoxHasTheSameForces) {
  Configuration cell = data::face_centred_cubic(29, 3.6, 1);
  cell.positions[1] += Cartesian{0.2, -0.1, 0.15};
  Configuration twice = cell;
  for (const Cartesian& p : cell.positions) {
    twice.elements.push_back(29);
    twice.positions.push_back(p + cell.cell->b);
  }
  twice.cell->b = 2 * cell.cell->b;
  const Answers found = answers({cell, twice});
  EXPECT_NEAR(found.energies[1], 2 * found.energies[0], 1e-10 * std::abs(found.energies[1]));
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_LT(data::norm(found.forces[1][i] - found.forces[0][i % 4]), 1e-10);
  EXPECT_GT(data::norm(found.forces[0][1]), 1e-3);
  for (std::size_t k = 0; k < 9; ++k) EXPECT_NEAR(found.virials[1][k], 2 * found.virials[0][k], 1e-9);
}

TEST(Deepmd, EnergiesOfDistantAtomsAddUpAndNeighboursComeInSmoothly) {
  const auto pair = [](double apart) { return Configuration{{29, 28}, {{0, 0, 0}, {apart, 0, 0}}, {}}; };
  const Configuration copper{{29}, {{0, 0, 0}}, {}}, nickel{{28}, {{1, 2, 3}}, {}};
  const Answers found = answers({copper, nickel, pair(9), pair(4 + 1e-6), pair(4 - 1e-6), pair(3)});
  const double apart = found.energies[0] + found.energies[1];
  EXPECT_NEAR(found.energies[2], apart, 1e-12);
  EXPECT_NEAR(found.energies[3], apart, 1e-12);
  EXPECT_NEAR(found.energies[4], apart, 1e-12);
  EXPECT_LT(data::norm(found.forces[4][0]), 1e-9);
  EXPECT_GT(std::abs(found.energies[5] - apart), 1e-6);
}

// What each precision says of one crystal: digits are the only difference.
TEST(Deepmd, PrecisionsDifferInDigitsAlone) {
  const auto with = [](const std::string& precision) {
    std::vector<std::string> options = small;
    options.back() = "precision=" + precision;
    return answers({alloy(5)}, options);
  };
  const Answers wide = with("f64"), narrow = with("f32"), mixed = with("mixed");
  for (const Answers* found : {&narrow, &mixed}) {
    EXPECT_NEAR(found->energies[0], wide.energies[0], 3e-6 * std::abs(wide.energies[0]));
    EXPECT_NE(found->energies[0], wide.energies[0]);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_LT(data::norm(found->forces[0][i] - wide.forces[0][i]), 1e-5);
  }
}

// --- the loss

// The training step's own gradient against differences of its loss: a step of gradient descent without
// momentum is the gradient.
TEST(DeepmdLoss, HasTheGradientOfItsForces) {
  const Workload& workload = find_workload("deepmd");
  std::vector<std::string> options = small;
  options.insert(options.end(), {"energy=1", "force=1", "virial=0.1"});
  const DeepmdSizes sizes = deepmd_sizes(Options(workload.options, options));
  const graph::Graph step =
      transform::make_training_step(build_model(workload, 1, options), workload.training.loss,
                                    transform::usual_optimizer(transform::OptimizerKind::sgd));
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : step.inputs())
    inputs.emplace_back(step.type(id).element, step.type(id).shape);
  fill_frame(place_frame({alloy(9), {}}, "test", sizes), sizes, 0, inputs);
  RandomStream random(2);
  for (const std::size_t target : {5u, 7u, 9u})
    for (std::int64_t i = 0; i < inputs[target].element_count(); ++i)
      inputs[target].set(i, random.uniform(-1, 1));
  for (const std::size_t weight : {6u, 8u, 10u}) inputs[weight].set(0, 0.1 * static_cast<double>(weight));
  constexpr float rate = 1e-3f;
  inputs.back().set(0, rate);
  const op::Evaluation at = op::evaluate(step, inputs, statistics(sizes));
  // Along the gradient of each state alone.
  for (const char* name : {"Cu.embed1.weight", "Ni.embed2.bias", "Ni.fit1.weight", "Cu.fit2.step"}) {
    const Tensor before = step.value(step.find_value(name)).data, after = at.states.at(name);
    double squares = 0;
    for (std::int64_t i = 0; i < before.element_count(); ++i)
      squares += std::pow((before.at(i) - after.at(i)) / static_cast<double>(rate), 2);
    const double slope = std::sqrt(squares), length = 1e-4;
    const auto loss_at = [&](double along) {
      auto states = statistics(sizes);
      Tensor& shifted = states.emplace(name, before.clone()).first->second;
      for (std::int64_t i = 0; i < before.element_count(); ++i)
        shifted.set(i,
                    before.at(i) + along * (before.at(i) - after.at(i)) / static_cast<double>(rate) / slope);
      return op::evaluate(step, inputs, states).outputs[0].at(0);
    };
    EXPECT_GT(slope, 1e-6) << name;
    EXPECT_NEAR((loss_at(length) - loss_at(-length)) / (2 * length), slope, 1e-5 * slope + 1e-10) << name;
  }
}

TEST(DeepmdLoss, WeightsMoveFromTheFirstToTheLast) {
  ThreadPool pool(1);
  const std::vector<std::string> options{"virial=0", "sel=110", "halving=2", "energy=0.02,1", "force=1000,1"};
  const auto task =
      open_task(find_workload("deepmd"),
                {.samples = 4, .model_options = options, .labels_required = true, .pool = &pool});
  const graph::Graph step = transform::make_training_step(
      build_model(find_workload("deepmd"), 1, options), find_workload("deepmd").training.loss,
      transform::usual_optimizer(transform::OptimizerKind::sgd));
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i + 1 < step.inputs().size(); ++i)
    tensors.emplace_back(step.type(step.inputs()[i]).element, step.type(step.inputs()[i]).shape);
  const auto weights = [&](std::uint64_t epoch) {
    const std::int64_t sample = 0;
    task->fill(std::span(&sample, 1), epoch, true, tensors);
    return std::pair(tensors[6].at(0) * 32, tensors[8].at(0) * 96);
  };
  EXPECT_NEAR(weights(0).first, 0.02, 1e-6);
  EXPECT_NEAR(weights(0).second, 1000, 1e-3);
  EXPECT_NEAR(weights(2).first, 0.51, 1e-6);
  EXPECT_NEAR(weights(2).second, 500.5, 1e-3);
  EXPECT_NEAR(weights(1000).first, 1, 1e-6);
  EXPECT_NEAR(weights(1000).second, 1, 1e-6);
  EXPECT_EQ(tensors[10].at(0), 0);  // virials do not count unless they are asked for
}

// --- data

// Around every atom of the perfect crystal: 12 neighbours at a / sqrt 2, 6 at a, 24 at a sqrt(3/2).
TEST(DeepmdData, StatisticsAreThoseOfTheShells) {
  const ScratchFolder folder;
  std::ofstream file(folder / "in.xyz");
  for (int frame = 0; frame < 8; ++frame) {
    data::XyzFrame crystal{data::face_centred_cubic(29, 3.6, 2), {}, {}};
    crystal.labels.energy = -112;
    crystal.labels.forces.resize(32);
    file << data::format_xyz(crystal);
  }
  file.close();
  ThreadPool pool(1);
  const std::vector<std::string> options{"cutoff=4.5", "sel=50"};
  const auto task = open_task(find_workload("deepmd"),
                              {.data = folder / "in.xyz", .model_options = options, .pool = &pool});
  const auto states = counted_statistics(*task, Options(find_workload("deepmd").options, options), pool);
  const double a = 3.6;
  double sum = 0, squares = 0;
  for (const auto& [count, r] : {std::pair(12, a / std::sqrt(2.0)), {6, a}, {24, a * std::sqrt(1.5)}}) {
    const double s = switched_inverse(r, 0.5, 4.5);
    sum += count * s, squares += count * s * s;
  }
  EXPECT_NEAR(states.at(radial_mean).at(0), sum / 50, 1e-6);
  EXPECT_NEAR(states.at(radial_deviation).at(0), std::sqrt(squares / 50 - sum * sum / 2500), 1e-6);
  EXPECT_NEAR(states.at(angular_deviation).at(0), std::sqrt(squares / 150), 1e-6);
  EXPECT_NEAR(states.at(energy_bias_name(29)).at(0), -3.5, 1e-6);
}

// What is generated where no file is given, by the elements that a model is for.
TEST(DeepmdData, IsMadeForMetalsAlloysArgonAndWater) {
  ThreadPool pool(2);
  const auto open = [&](std::vector<std::string> options) {
    return open_task(find_workload("deepmd"), {.samples = 6, .model_options = options, .pool = &pool});
  };
  for (const auto& options : {std::vector<std::string>{"types=Ag"},
                              {"types=Ar"},
                              {"types=Ni,Cu", "atoms=16,16", "sel=90,90"},
                              {"types=O,H", "atoms=4,8", "sel=4,8"}}) {
    const auto task = open(options);
    EXPECT_EQ(task->size(), 6) << options[0];
    EXPECT_TRUE(task->has_labels()) << options[0];
  }
  try {
    open({"types=U,Pu", "atoms=16,16", "sel=90,90"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "are not generated")) << error.what();
  }
}

std::string refusal(const std::string& text, std::vector<std::string> options, bool labels = true) {
  const ScratchFolder folder;
  std::ofstream(folder / "my.xyz") << text;
  ThreadPool pool(1);
  try {
    open_task(
        find_workload("deepmd"),
        {.data = folder / "my.xyz", .model_options = options, .labels_required = labels, .pool = &pool});
    return "opened";
  } catch (const Error& error) {
    return error.what();
  }
}

constexpr const char* properties = "Properties=species:S:1:pos:R:3:forces:R:3";
constexpr const char* box = " Lattice=\"9 0 0 0 9 0 0 0 9\"";

std::string frame(const std::string& atoms, const std::string& more) {
  return std::to_string(std::ranges::count(atoms, '\n')) + "\n" + properties + more + "\n" + atoms;
}

TEST(DeepmdData, NamesTheFrameAndTheAtoms) {
  const std::string good = "Cu 0 0 0 0 0 0\nCu 2.5 0 0 0 0 0\n", energy = std::string(box) + " energy=-1";
  const auto refused = [&](const std::string& text, const std::string& words,
                           const std::vector<std::string>& options = {}) {
    const std::string message = refusal(text, options);
    EXPECT_TRUE(contains(message, words)) << message;
  };
  EXPECT_EQ(refusal(frame(good, energy), {}), "opened");
  const std::string twice =
      refusal(frame(good, energy) + frame("Cu 0 0 0 0 0 0\nCu 9 0 0 0 0 0\n", energy), {});
  EXPECT_TRUE(contains(twice, "my.xyz, frame 2")) << twice;
  EXPECT_TRUE(contains(twice, "atoms 1 (Cu) and 2 (Cu) are at one place")) << twice;
  refused(frame("Cu 0 0 0 0 0 0\nO 2 0 0 0 0 0\n", energy), "atom 2 (O) is of an element that is no type");
  refused(frame(good, energy), "has 2 atoms of Cu, the model has room for 1", {"atoms=1"});
  refused(frame(good, " energy=-1 Lattice=\"2 0 0 0 2 0 0 0 2\""), "neighbors of Cu within 6 A");
  refused(frame(good, " energy=-1 Lattice=\"9 0 0 0 9 0 9 9 0\""), "the box has no volume");
  refused(frame(good, box), "has no energy to learn from");
  refused("1\nProperties=species:S:1:pos:R:3 energy=1\nCu 0 0 0\n", "has no forces to learn from");
  refused(frame(good, energy), "has no virial to learn from", {"virial=1"});
  refused("", "has no frames");
  EXPECT_EQ(refusal("1\nProperties=species:S:1:pos:R:3 energy=1\nCu 0 0 0\n", {"force=0"}), "opened");
  EXPECT_EQ(refusal("1\njust a comment\nCu 0 0 0\n", {}, false), "opened");
}

TEST(DeepmdOptions, NameWhatIsWrong) {
  const auto refused = [](const std::vector<std::string>& options, const std::string& words) {
    try {
      build_model(find_workload("deepmd"), 1, options);
      ADD_FAILURE() << words;
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), words)) << error.what();
    }
  };
  refused({"types=Cu,Xx"}, "'Xx' is no element");
  refused({"types=Cu,Cu"}, "Cu is there twice");
  refused({"types=O,H"}, "has 1 numbers for 2 types");
  refused({"embedding=8,0"}, "'0' is not a number from 1 to 4096");
  refused({"embedding=8,a"}, "'a' is not a number");
  refused({"axis=200"}, "is more than the embedding's last width, 100");
  refused({"smooth=6"}, "must be below the cutoff");
  refused({"force=1,2,3"}, "takes two numbers");
}

}  // namespace
}  // namespace superstep::workload
