// The network that learns through a diffraction experiment: its published sizes, and the physics of its loss
// beside closed forms and beside the generator's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <set>

#include "superstep/base/random.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "superstep/workload/xray/autophasenn/autophasenn.h"
#include "tests/contains.h"

namespace superstep::workload {
namespace {

graph::Graph network(const std::vector<std::string>& options, std::int64_t batch = 1) {
  graph::Graph graph = build_model(find_workload("autophasenn"), batch, options);
  value_or_throw(graph::verify(graph, op::infer_types));
  return graph;
}

double multiply_accumulates_of(const graph::Graph& graph) {
  double sum = 0;
  for (const graph::Node& node : graph.nodes())
    if (node.op == "Conv") sum += op::cost(graph, node).flops / 2;
  return sum;
}

TEST(AutoPhaseNN, HasThePublishedSizesOfBothEncoders) {
  std::map<std::string, std::int64_t> parts;
  const graph::Graph pooled = network({});
  for (graph::ValueId id : transform::trainable_states(pooled)) {
    const std::string& name = pooled.value(id).name;
    parts[name.substr(0, 5)] += pooled.type(id).shape.element_count();
  }
  EXPECT_EQ(parts["encod"], 3515040);
  EXPECT_EQ(parts["ampli"], 1744033);
  EXPECT_EQ(parts["phase"], 1744033);
  EXPECT_NEAR(multiply_accumulates_of(pooled), 18.2e9, 0.1e9);
  EXPECT_EQ(count_parameters(network({"encoder=strided"})), 6975362);
}

TEST(AutoPhaseNN, IsBuiltForOtherSizes) {
  for (const char* encoder : {"encoder=pooled", "encoder=strided"})
    for (std::int64_t size : {16, 32, 48}) {
      const graph::Graph graph = network({"size=" + std::to_string(size), "width=2", encoder}, 3);
      EXPECT_EQ(graph.type(graph.inputs()[0]).shape, (Shape{3, 1, size, size, size}));
      for (const graph::Output& output : graph.outputs())
        EXPECT_EQ(graph.type(output.value).shape, (Shape{3, 1, size / 2, size / 2, size / 2}));
    }
  const auto error_of = [](const std::vector<std::string>& options) -> std::string {
    try {
      network(options);
      return "no error";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_TRUE(contains(error_of({"size=40"}), "40 voxels cannot be halved 4 times"));
  EXPECT_TRUE(contains(error_of({"encoder=pool"}), "encoder"));
}

// --- the physics

constexpr std::int64_t n = 8, side = 2 * n;

Tensor cube(double value) { return Tensor::full(ElementType::f32, {1, 1, n, n, n}, value); }
std::int64_t voxel(std::int64_t z, std::int64_t y, std::int64_t x) { return (z * n + y) * n + x; }

// An object in the middle of the grid, of random amplitudes above the support's threshold and phases.
struct Object {
  Tensor amplitude = cube(0), phase = cube(0);

  Object copy() const { return {amplitude.clone(), phase.clone()}; }  // tensors share their elements
};
Object random_object(std::uint64_t seed) {
  Object object;
  RandomStream random(seed);
  for (std::int64_t z = 2; z < 6; ++z)
    for (std::int64_t y = 2; y < 6; ++y)
      for (std::int64_t x = 2; x < 6; ++x) {
        object.amplitude.set(voxel(z, y, x), random.uniform(0.3, 1));
        object.phase.set(voxel(z, y, x), random.uniform(-3, 3));
      }
  return object;
}

Tensor pattern_of(const Object& object) {
  graph::Graph graph("physics");
  op::Builder b(graph);
  const op::Var amplitude = b.input("amp", ElementType::f32, {1, 1, n, n, n});
  const op::Var phase = b.input("phase", ElementType::f32, {1, 1, n, n, n});
  b.output("pattern", diffracted(amplitude, phase));
  const Tensor inputs[] = {object.amplitude, object.phase};
  return op::evaluate(graph, inputs).outputs[0];
}

double worst_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
  return worst;
}

// sin(pi k m / N) / (m sin(pi k / N)) along every axis, for a solid of m voxels in a grid of N.
TEST(DiffractedCrystal, OfABoxIsTheProductOfItsSides) {
  const std::int64_t sides[] = {5, 4, 3};
  Object object;
  for (std::int64_t z = 0; z < sides[0]; ++z)
    for (std::int64_t y = 0; y < sides[1]; ++y)
      for (std::int64_t x = 0; x < sides[2]; ++x) object.amplitude.set(voxel(1 + z, 2 + y, 3 + x), 1);
  const Tensor pattern = pattern_of(object);
  const auto along = [](std::int64_t place, std::int64_t m) {
    const double k = static_cast<double>(place - side / 2), turn = std::numbers::pi * k / side;
    return k == 0 ? 1.0
                  : std::abs(std::sin(turn * static_cast<double>(m)) /
                             (static_cast<double>(m) * std::sin(turn)));
  };
  for (std::int64_t i = 0; i < pattern.element_count(); ++i)
    ASSERT_NEAR(
        pattern.at(i),
        along(i / (side * side), sides[0]) * along(i / side % side, sides[1]) * along(i % side, sides[2]),
        2e-6)
        << i;
}

// What a measurement does not tell: phase of the whole, place, twin.
TEST(DiffractedCrystal, KeepsNeitherPhaseNorPlaceNorTwin) {
  const Object object = random_object(1);
  Object turned = object.copy(), moved, twin;
  for (std::int64_t i = 0; i < n * n * n; ++i) turned.phase.set(i, object.phase.at(i) + 0.7);
  for (std::int64_t z = 1; z < n; ++z)
    for (std::int64_t y = 1; y < n; ++y)
      for (std::int64_t x = 1; x < n; ++x) {
        const std::int64_t mirror = voxel(n - z, n - y, n - x), neighbour = voxel(z - 1, y, x - 1);
        moved.amplitude.set(voxel(z, y, x), object.amplitude.at(neighbour));
        moved.phase.set(voxel(z, y, x), object.phase.at(neighbour));
        twin.amplitude.set(voxel(z, y, x), object.amplitude.at(mirror));
        twin.phase.set(voxel(z, y, x), -object.phase.at(mirror));
      }
  const Tensor pattern = pattern_of(object);
  for (const Object* same : {&turned, &moved, &twin})
    EXPECT_LT(worst_difference(pattern_of(*same), pattern), 1e-5);
  EXPECT_GT(worst_difference(pattern_of(random_object(2)), pattern), 0.01);  // the control
}

// Frequency zero in the middle holds the sum, and all squares together n times the object's (Parseval).
TEST(DiffractedCrystal, HoldsTheSquaresOfTheObject) {
  const Object object = random_object(3);
  const Tensor pattern = pattern_of(object);
  std::complex<double> sum = 0;
  double squares = 0, counts = 0;
  for (std::int64_t i = 0; i < n * n * n; ++i) {
    sum += std::polar(object.amplitude.at(i), object.phase.at(i));
    squares += object.amplitude.at(i) * object.amplitude.at(i);
  }
  for (std::int64_t i = 0; i < pattern.element_count(); ++i) counts += pattern.at(i) * pattern.at(i);
  const double middle = pattern.at(((side / 2) * side + side / 2) * side + side / 2);
  const double largest = std::abs(sum) / middle;  // what the pattern was divided by
  EXPECT_NEAR(counts * largest * largest, squares * side * side * side, 1e-4 * squares * side * side * side);
}

TEST(DiffractedCrystal, LeavesOutWhatLiesBelowTheSupport) {
  const Object object = random_object(4);
  Object hazy = object.copy(), solid = object.copy();
  for (std::int64_t x = 0; x < n; ++x) {
    hazy.amplitude.set(voxel(0, 0, x), 0.99 * least_amplitude);
    solid.amplitude.set(voxel(0, 0, x), 1.5 * least_amplitude);
  }
  EXPECT_EQ(worst_difference(pattern_of(hazy), pattern_of(object)), 0);
  EXPECT_GT(worst_difference(pattern_of(solid), pattern_of(object)), 1e-3);
}

// --- the data and the measure

TEST(AutoPhaseNN, MeasuresNothingWrongInATrueCrystalWithoutNoise) {
  const auto generator = make_generator("autophasenn", std::vector<std::string>{"size=32", "noise=no"});
  ThreadPool pool(1);
  const Fields fields = generated_fields(*generator, {.samples = 2, .seed = 1, .pool = &pool}, 2);
  const CrystalQuality right = crystal_quality(fields, 1, true_crystal(fields, 1));
  EXPECT_LT(right.diffraction_l1, 1e-6);
  EXPECT_LT(right.chi2, 1e-6);
  EXPECT_NEAR(right.iou, 1, 1e-6);
  EXPECT_LT(right.phase_error, 1e-3);
  EXPECT_NEAR(right.ssim, 1, 1e-3);
  const CrystalQuality wrong = crystal_quality(fields, 1, true_crystal(fields, 0));
  EXPECT_GT(wrong.diffraction_l1, 1e-3);
  EXPECT_GT(wrong.chi2, 0.01);
}

// The loss that training sees is the first metric that quality reports.
TEST(AutoPhaseNN, LosesWhatIsMeasured) {
  const auto generator =
      make_generator("autophasenn", std::vector<std::string>{"size=16", "diameter=0.4..0.7"});
  ThreadPool pool(1);
  const Fields fields = generated_fields(*generator, {.samples = 1, .seed = 2, .pool = &pool}, 1);
  Object object;
  object.amplitude = cube(0.6);
  RandomStream random(5);
  for (std::int64_t i = 0; i < n * n * n; ++i) object.phase.set(i, random.uniform(-1, 1));
  const Tensor pattern = pattern_of(object), &measured = fields.at("diff");
  double loss = 0;
  for (std::int64_t i = 0; i < pattern.element_count(); ++i)
    loss += std::abs(pattern.at(i) - measured.at(i)) / static_cast<double>(pattern.element_count());
  const Tensor outputs[] = {object.amplitude, object.phase};
  EXPECT_NEAR(crystal_quality(fields, 0, predicted_crystal(outputs, 0)).diffraction_l1, loss, 1e-5 * loss);
}

// What `vary` trains on is a pattern turned or mirrored about frequency zero, one of 48 ways.
TEST(AutoPhaseNN, VariesByTheSymmetriesOfTheCube) {
  ThreadPool pool(1);
  const auto task = open_task(find_workload("autophasenn"),
                              {.samples = 10, .model_options = {"size=16", "vary=yes"}, .pool = &pool});
  const std::int64_t indices[] = {0};
  const auto filled = [&](std::uint64_t epoch, bool augment) {
    std::vector<Tensor> tensors{Tensor(ElementType::f32, {1, 1, side, side, side})};
    task->fill(indices, epoch, augment, tensors);
    return tensors[0];
  };
  const Tensor plain = filled(0, false);
  const auto at = [&](const Tensor& pattern, const std::array<std::int64_t, 3>& q) {  // q from -side / 2 on
    std::int64_t index = 0;
    for (const std::int64_t each : q) index = index * side + (each + side / 2 + side) % side;
    return pattern.at(index);
  };
  const auto is_turned_by = [&](const Tensor& turned, const std::array<std::size_t, 3>& axes, int signs) {
    for (std::int64_t i = 0; i < side * side * side; ++i) {
      const std::array q{i / (side * side) - side / 2, i / side % side - side / 2, i % side - side / 2};
      std::array<std::int64_t, 3> old{};
      for (std::size_t a = 0; a < 3; ++a) old[axes[a]] = signs >> a & 1 ? -q[a] : q[a];
      if (at(turned, q) != at(plain, old)) return false;
    }
    return true;
  };
  std::set<std::pair<std::array<std::size_t, 3>, int>> seen;
  for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
    const Tensor turned = filled(epoch, true);
    int ways = 0;
    std::array<std::size_t, 3> axes{0, 1, 2};
    do
      for (int signs = 0; signs < 8; ++signs)
        if (is_turned_by(turned, axes, signs)) ++ways, seen.emplace(axes, signs);
    while (std::ranges::next_permutation(axes).found);
    EXPECT_EQ(ways, 1) << "epoch " << epoch;
  }
  EXPECT_GT(seen.size(), 6U);
}

// On measured patterns, by what they are alone.
TEST(AutoPhaseNN, LearnsFourCrystals) {
  const auto generator =
      make_generator("autophasenn", std::vector<std::string>{"size=16", "diameter=0.4..0.7"});
  ThreadPool pool(1);
  const Fields fields = generated_fields(*generator, {.samples = 4, .seed = 1, .pool = &pool}, 4);
  const graph::Graph step = transform::make_training_step(network({"size=16", "width=4"}, 4),
                                                          find_workload("autophasenn").training.loss,
                                                          {.kind = transform::OptimizerKind::adam});
  const auto learnt = [&](float rate) {
    Tensor patterns(ElementType::f32, {4, 1, side, side, side});
    std::ranges::copy(fields.at("diff").as<float>(), patterns.as<float>().begin());
    const Tensor inputs[] = {patterns, Tensor::scalar(rate)};
    std::map<std::string, Tensor> states;
    std::vector<double> losses;
    for (int i = 0; i < 16; ++i) {
      op::Evaluation result = op::evaluate(step, inputs, states);
      losses.push_back(result.outputs[0].at(0));
      states = std::move(result.states);
    }
    return losses.back() / losses.front();
  };
  EXPECT_LT(learnt(1e-2f), 0.9);
  EXPECT_NEAR(learnt(0), 1, 1e-6);  // the control
}

}  // namespace
}  // namespace superstep::workload
