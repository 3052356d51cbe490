// The network of clusters: what must not change its energies, what its forces are, what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/core/gradient_check.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/physics/materials/water.h"
#include "superstep/transform/training/differentiate.h"
#include "superstep/workload/chemistry/schnet/schnet.h"
#include "superstep/workload/task.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::workload {
namespace {

using data::Cartesian;
using data::Configuration;

const std::vector<std::string> small = {"atoms=40", "edges=400", "clusters=4",
                                        "width=12", "blocks=2",  "gaussians=12"};

Configuration water(int molecules, std::uint64_t seed) {
  RandomStream random(seed);
  return {data::water_elements(molecules), data::pack_water({}, molecules, random), {}};
}

// What the untrained network says of clusters, by way of a task that packs them.
struct Answers {
  std::vector<double> energies;
  std::vector<std::vector<Cartesian>> forces;
};

Answers answers(const std::vector<Configuration>& clusters, const std::vector<std::string>& options = small) {
  const ScratchFolder folder;
  std::ofstream file(folder / "in.xyz");
  for (const Configuration& each : clusters) file << data::format_xyz({each, {}, {}});
  file.close();
  ThreadPool pool(1);
  const Workload& workload = find_workload("schnet");
  const auto task = open_task(
      workload,
      {.data = folder / "in.xyz", .model_options = options, .labels_required = false, .pool = &pool});
  const graph::Graph model = build_model(workload, task->size(), options);
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : model.inputs())
    inputs.emplace_back(model.type(id).element, model.type(id).shape);
  std::vector<std::int64_t> all(static_cast<std::size_t>(task->size()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  task->fill_inputs(all, inputs, pool);
  task->write_table(folder / "out.xyz", op::evaluate(model, inputs).outputs);
  Answers result;
  for (const data::XyzFrame& frame : data::read_xyz(folder / "out.xyz")) {
    result.energies.push_back(frame.labels.energy.value());
    result.forces.push_back(frame.labels.forces);
  }
  return result;
}

// About the axis (1, 2, 2) / 3 by an angle of cosine 0.28 and sine 0.96 (Rodrigues).
Cartesian turned(const Cartesian& v) {
  const Cartesian axis{1.0 / 3, 2.0 / 3, 2.0 / 3};
  return 0.28 * v + 0.96 * data::cross(axis, v) + (0.72 * data::dot(axis, v)) * axis;
}

template <class Change>
Configuration changed(Configuration cluster, Change change) {
  for (Cartesian& p : cluster.positions) p = change(p);
  return cluster;
}

TEST(Schnet, HasThePublishedParameters) {
  const auto count = [](std::vector<std::string> options) {
    return count_parameters(build_model(find_workload("schnet"), 1, options));
  };
  EXPECT_EQ(count({}), 186701);
  EXPECT_EQ(count({"forces=0"}), 186701);
  EXPECT_EQ(count({"width=128", "blocks=6", "gaussians=50"}), 455809);
}

TEST(Schnet, DoesNotSeeHowAClusterLiesOrIsWritten) {
  const Configuration cluster = water(4, 7);
  Configuration exchanged = cluster;  // the first two molecules, and the hydrogens of the third
  for (std::size_t i = 0; i < 3; ++i) std::swap(exchanged.positions[i], exchanged.positions[3 + i]);
  std::swap(exchanged.positions[7], exchanged.positions[8]);
  const Answers found = answers({cluster, changed(cluster, turned),
                                 changed(cluster,
                                         [](Cartesian p) {
                                           return p + Cartesian{3, -2, 1};
                                         }),
                                 exchanged, water(3, 8)});
  for (const std::size_t same : {1u, 2u, 3u})
    EXPECT_NEAR(found.energies[same], found.energies[0], 2e-6 * std::max(1.0, std::abs(found.energies[0])))
        << same;
  EXPECT_GT(std::abs(found.energies[4] - found.energies[0]), 1e-3);
  // Forces turn with the cluster, and those of exchanged atoms are exchanged.
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_LT(data::norm(found.forces[1][i] - turned(found.forces[0][i])), 1e-5);
  EXPECT_LT(data::norm(found.forces[3][7] - found.forces[0][8]), 1e-5);
  EXPECT_GT(data::norm(found.forces[0][7] - found.forces[0][8]), 1e-4);
}

TEST(Schnet, DoesNotSeeWhatIsInThePackBeside) {
  const Configuration cluster = water(3, 5);
  const double alone = answers({cluster}).energies[0];
  const Answers among = answers({water(4, 1), cluster, water(5, 2)});
  EXPECT_NEAR(among.energies[1], alone, 1e-6 * std::max(1.0, std::abs(alone)));
}

TEST(Schnet, EnergiesOfDistantMoleculesAddUp) {
  const Configuration one = water(1, 3), other = water(1, 4);
  Configuration both = one;
  for (std::size_t i = 0; i < 3; ++i) {
    both.elements.push_back(other.elements[i]);
    both.positions.push_back(other.positions[i] + Cartesian{20, 0, 0});
  }
  const Answers found = answers({one, other, both});
  EXPECT_NEAR(found.energies[2], found.energies[0] + found.energies[1],
              2e-6 * std::max(1.0, std::abs(found.energies[2])));
}

TEST(Schnet, ForcesAreMinusTheSlopeOfTheEnergy) {
  constexpr double step = 5e-3;  // A
  const Configuration cluster = water(2, 11);
  std::vector<Configuration> moved{cluster};
  for (const double by : {step, -step})
    for (std::size_t i = 0; i < 6; ++i) {
      moved.push_back(cluster);
      moved.back().positions[i] += Cartesian{0.6 * by, -0.8 * by, 0};
    }
  const Answers found = answers(moved);
  double largest = 0, total = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const double slope = (found.energies[1 + i] - found.energies[7 + i]) / (2 * step);
    const double along = data::dot(found.forces[0][i], {0.6, -0.8, 0});
    largest = std::max(largest, std::abs(along)), total += std::abs(along + slope);
  }
  EXPECT_GT(largest, 0.02);
  EXPECT_LT(total, 1e-2 * largest);
}

TEST(Schnet, LeavesForcesAwayWhereTheyAreNotAskedFor) {
  std::vector<std::string> options = small;
  options.push_back("forces=0");
  const Answers without = answers({water(3, 5)}, options), with = answers({water(3, 5)});
  EXPECT_TRUE(without.forces[0].empty());
  EXPECT_NEAR(without.energies[0], with.energies[0], 1e-6);
}

// --- the derivative of a derivative through rows and sums of rows

// A function of rows that are far from linear in what they are gathered from.
TEST(RowsOfPacks, HaveDerivativesOfTheirDerivatives) {
  RandomStream random(3);
  Tensor positions(ElementType::f64, {2, 4, 3});
  for (std::int64_t i = 0; i < positions.element_count(); ++i) positions.set(i, random.uniform(-0.7, 0.7));
  const Tensor source =
      Tensor::from(Shape{2, 6}, std::vector<std::int64_t>{0, 1, 2, 3, 0, -1, 3, 2, 1, 1, -1, -1});
  const Tensor target =
      Tensor::from(Shape{2, 6}, std::vector<std::int64_t>{1, 2, 3, 0, 2, -1, 0, 1, 0, 3, -1, -1});
  const auto energy = [&](op::Builder& b, std::span<const op::Var> x) {
    const op::Var s = b.constant(source), t = b.constant(target);
    const op::Var apart = op::gather_rows(x[0], s) - op::gather_rows(x[0], t);
    const op::Var sums = op::segment_sum(op::exp(apart * apart), t, 4);
    return std::vector{op::reduce_sum(sums * sums)};
  };
  // The gradient as the function: reverse mode over reverse mode, as a loss of forces needs it.
  const auto slope = [&](op::Builder& b, std::span<const op::Var> x) {
    const op::Var gradient = transform::gradient(b, energy(b, x)[0], x)[0];
    return std::vector{op::reduce_sum(gradient * gradient)};
  };
  const std::vector<Tensor> at{positions};
  const Status hessian = op::check_gradients(energy, at, {.second_order = true}),
               twice = op::check_gradients(slope, at);
  EXPECT_TRUE(hessian.has_value()) << hessian.error().what();
  EXPECT_TRUE(twice.has_value()) << twice.error().what();
}

// --- data

TEST(NearestNeighbours, AreTheNearestWithinTheCutoff) {
  const std::vector<Cartesian> line{{0, 0, 0}, {1, 0, 0}, {2.5, 0, 0}, {9, 0, 0}};
  const NeighbourGraph all = nearest_neighbours(line, 6, 28), one = nearest_neighbours(line, 6, 1);
  EXPECT_EQ(all.target, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(all.source, (std::vector<std::int32_t>{1, 2, 0, 2, 1, 0}));
  EXPECT_EQ(one.source, (std::vector<std::int32_t>{1, 0, 1}));
  EXPECT_TRUE(nearest_neighbours(std::vector<Cartesian>{{0, 0, 0}}, 6, 28).source.empty());
}

std::string refusal(const std::string& text, std::vector<std::string> options = small, bool labels = true) {
  const ScratchFolder folder;
  std::ofstream(folder / "my.xyz") << text;
  ThreadPool pool(1);
  try {
    open_task(
        find_workload("schnet"),
        {.data = folder / "my.xyz", .model_options = options, .labels_required = labels, .pool = &pool});
    return "opened";
  } catch (const Error& error) {
    return error.what();
  }
}

constexpr const char* properties = "Properties=species:S:1:pos:R:3:forces:R:3";

std::string frame(const std::string& atoms, const std::string& more = " energy=-1") {
  return std::to_string(std::ranges::count(atoms, '\n')) + "\n" + properties + more + "\n" + atoms;
}

TEST(ClusterData, NamesTheFrameAndTheAtoms) {
  const std::string good = "O 0 0 0 0 0 0\nH 1 0 0 0 0 0\nH 0 1 0 0 0 0\n";
  const auto refused = [&](const std::string& text, const std::string& words) {
    const std::string message = refusal(text);
    EXPECT_TRUE(contains(message, words)) << message;
  };
  EXPECT_EQ(refusal(frame(good)), "opened");
  const std::string twice = refusal(frame(good) + frame("O 0 0 0 0 0 0\nH 1 0 0 0 0 0\nH 1 0 0 0 0 0\n"));
  EXPECT_TRUE(contains(twice, "my.xyz, frame 2")) << twice;
  EXPECT_TRUE(contains(twice, "atoms 2 (H) and 3 (H) are at one place")) << twice;
  refused(frame("O 0 0 0 0 0 0\nH nan 0 0 0 0 0\n"), "line 4");
  refused(frame("O 0 0 0 0 0 0\nXx 1 0 0 0 0 0\n"), "'Xx' is no element");
  refused(frame("Og 0 0 0 0 0 0\n"), "is of element 118: there is room for 1 to 99");
  refused(frame(good, ""), "has no energy to learn from");
  refused(frame(good, " energy=-1 Lattice=\"9 0 0 0 9 0 0 0 9\""), "has a periodic box");
  refused("1\nProperties=species:S:1:pos:R:3 energy=1\nO 0 0 0\n", "has no forces to learn from");
  refused("", "has no clusters");
  EXPECT_TRUE(contains(refusal(frame(good), {"atoms=2"}), "has 3 atoms and 6 edges, a pack has room for 2"));
}

TEST(ClusterData, EnergiesAloneNeedNoForces) {
  EXPECT_EQ(refusal("1\nProperties=species:S:1:pos:R:3 energy=1\nO 0 0 0\n", {"forces=0"}), "opened");
  EXPECT_EQ(refusal("1\njust a comment\nO 0 0 0\n", small, false), "opened");
}

// Any cluster of a size can stand where another did: an epoch has each once, in another order than the last.
TEST(ClusterData, AnEpochHasEveryClusterOnce) {
  ThreadPool pool(2);
  const auto task =
      open_task(find_workload("schnet"), {.samples = 60, .model_options = {"most=6"}, .pool = &pool});
  const graph::Graph model = build_model(find_workload("schnet"), 1);
  const auto energies = [&](std::uint64_t epoch) {
    std::vector<Tensor> tensors;
    for (const graph::ValueId id : model.inputs())
      tensors.emplace_back(model.type(id).element, model.type(id).shape);
    for (const Shape& shape : {Shape{1, 10}, Shape{1, 10}, Shape{1, 96, 3}, Shape{1, 96, 3}})
      tensors.emplace_back(ElementType::f32, shape);
    std::vector<double> all;
    for (std::int64_t pack = 0; pack < task->training_count(); ++pack) {
      task->fill(std::span(&pack, 1), epoch, true, tensors);
      for (std::int64_t i = 0; i < 10; ++i) all.push_back(tensors[4].at(i));
    }
    return all;
  };
  auto first = energies(1), second = energies(2);
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, second);
  const auto about = task->describe();
  EXPECT_EQ(about.at("clusters"), 60);
  EXPECT_EQ(about.at("training_clusters"), std::ranges::count_if(first, [](double e) { return e != 0; }));
}

}  // namespace
}  // namespace superstep::workload
