// Augmentation of a model of one's own: each step does what it says, to all of its arrays alike; what is
// drawn is a matter of seed, sample and epoch alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "superstep/run/model.h"
#include "superstep/run/user/arrays.h"
#include "superstep/run/user/augmentation.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace on = onnx::testing;
using Texts = std::vector<std::string>;

constexpr std::int64_t many = 400, side = 4;

// Every element another number, in the picture and in the mask.
std::vector<Tensor> batch() {
  std::vector<Tensor> tensors{Tensor(ElementType::f32, {many, 2, side, side}),
                              Tensor(ElementType::i64, {many, side, side}), Tensor(ElementType::i64, {many})};
  for (Tensor& tensor : tensors)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, static_cast<double>(i + 1));
  return tensors;
}

const std::vector<AugmentedArray> arrays{
    {.names = {"x"}, .type = ElementType::f32, .row = Shape{2, side, side}},
    {.names = {"mask", "target"}, .type = ElementType::i64, .row = Shape{side, side}, .labels = true},
    {.names = {"label"}, .type = ElementType::i64, .row = Shape{}, .labels = true}};

std::vector<std::int64_t> indices() {
  std::vector<std::int64_t> all(many);
  for (std::int64_t i = 0; i < many; ++i) all[static_cast<std::size_t>(i)] = i;
  return all;
}

std::vector<Tensor> augmented(const Texts& steps, std::uint64_t epoch = 0, std::uint64_t seed = 1) {
  std::vector<Tensor> tensors = batch();
  Augmenter(augmentations_from_text(steps), arrays, seed).apply(indices(), epoch, tensors);
  return tensors;
}

// Element (i, j) of plane `plane` of a sample.
double at(const Tensor& tensor, std::int64_t sample, std::int64_t plane, std::int64_t i, std::int64_t j) {
  const std::int64_t planes = tensor.element_count() / (many * side * side);
  return tensor.at(((sample * planes + plane) * side + i) * side + j);
}

// How many samples are as `expected` makes them of the whole, in picture and mask alike.
template <class Expected>
std::int64_t count(const std::vector<Tensor>& found, const Expected& expected) {
  const std::vector<Tensor> whole = batch();
  std::int64_t same = 0;
  for (std::int64_t sample = 0; sample < many; ++sample) {
    bool all = true;
    for (std::int64_t i = 0; i < side; ++i)
      for (std::int64_t j = 0; j < side; ++j) {
        const auto [a, b] = expected(i, j);
        const bool inside = a >= 0 && a < side && b >= 0 && b < side;
        for (std::int64_t plane = 0; plane < 2; ++plane)
          all = all && at(found[0], sample, plane, i, j) == (inside ? at(whole[0], sample, plane, a, b) : 0);
        all = all && at(found[1], sample, 0, i, j) == (inside ? at(whole[1], sample, 0, a, b) : 0);
      }
    same += all;
  }
  return same;
}

using Place = std::pair<std::int64_t, std::int64_t>;
Place as_it_is(std::int64_t i, std::int64_t j) { return {i, j}; }

// Of 400 draws of a half 140 to 260 are six standard deviations on both sides.
void expect_half(std::int64_t found) {
  EXPECT_GT(found, 140);
  EXPECT_LT(found, 260);
}

TEST(Augmentation, FlipsPictureAndMaskTogether) {
  const auto horizontal = augmented({"x,mask=flip-horizontal"}),
             vertical = augmented({"x,target=flip-vertical"});
  const std::int64_t left = count(horizontal, as_it_is);
  const std::int64_t flipped = count(horizontal, [](auto i, auto j) { return Place(i, side - 1 - j); });
  EXPECT_EQ(left + flipped, many);
  expect_half(flipped);
  const std::int64_t up = count(vertical, [](auto i, auto j) { return Place(side - 1 - i, j); });
  EXPECT_EQ(up + count(vertical, as_it_is), many);
  expect_half(up);
  // What is not named stays as it is.
  EXPECT_EQ(horizontal[2].at(7), 8);
}

TEST(Augmentation, TurnsByQuarters) {
  const auto turned = augmented({"x,mask=rotate"});
  const std::int64_t counts[] = {
      count(turned, as_it_is), count(turned, [](auto i, auto j) { return Place(j, side - 1 - i); }),
      count(turned, [](auto i, auto j) { return Place(side - 1 - i, side - 1 - j); }),
      count(turned, [](auto i, auto j) { return Place(side - 1 - j, i); })};
  EXPECT_EQ(counts[0] + counts[1] + counts[2] + counts[3], many);
  for (const std::int64_t each : counts) EXPECT_GT(each, 50);
}

TEST(Augmentation, MovesAndCutsOut) {
  const auto moved = augmented({"x,mask=shift:1"});
  std::int64_t all = 0;
  for (std::int64_t down = -1; down <= 1; ++down)
    for (std::int64_t right = -1; right <= 1; ++right) {
      const auto each = count(moved, [&](auto i, auto j) { return Place(i - down, j - right); });
      EXPECT_GT(each, 10) << down << right;
      all += each;
    }
  EXPECT_EQ(all, many);
  const auto cut = augmented({"x,mask=cutout:3"});
  all = 0;
  for (std::int64_t top = 0; top <= 1; ++top)
    for (std::int64_t left = 0; left <= 1; ++left)
      all += count(cut, [&](auto i, auto j) {
        return i >= top && i < top + 3 && j >= left && j < left + 3 ? Place(-1, -1) : Place(i, j);
      });
  EXPECT_EQ(all, many);
}

TEST(Augmentation, NoiseAndGain) {
  const std::vector<Tensor> whole = batch(), noisy = augmented({"x=noise:0.5"}),
                            louder = augmented({"x=gain:0.25"});
  double sum = 0, squares = 0;
  const std::int64_t elements = whole[0].element_count();
  for (std::int64_t i = 0; i < elements; ++i) {
    const double error = noisy[0].at(i) - whole[0].at(i);
    sum += error, squares += error * error;
  }
  // 12,800 draws: the mean is known to 0.0044, the deviation to 0.0031; six times that.
  EXPECT_NEAR(sum / static_cast<double>(elements), 0, 0.027);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(elements)), 0.5, 0.02);
  std::set<float> factors;
  const std::int64_t row = elements / many;
  for (std::int64_t sample = 0; sample < many; ++sample) {
    const double factor = louder[0].at(sample * row) / whole[0].at(sample * row);
    EXPECT_GE(factor, 0.7499);
    EXPECT_LE(factor, 1.2501);
    for (std::int64_t i = 0; i < row; ++i)
      EXPECT_NEAR(louder[0].at(sample * row + i), factor * whole[0].at(sample * row + i),
                  1e-5 * whole[0].at(sample * row + i));
    factors.insert(static_cast<float>(factor));
  }
  EXPECT_GT(factors.size(), 390u);
}

TEST(Augmentation, IsOfSeedSampleAndEpochAlone) {
  const Texts steps{"x,mask=flip-horizontal", "x,mask=shift:1", "x=noise:0.1"};
  const auto once = augmented(steps, 3, 7);
  const auto bits = [](const Tensor& tensor) {
    return std::string(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count());
  };
  EXPECT_EQ(bits(augmented(steps, 3, 7)[0]), bits(once[0]));
  EXPECT_NE(bits(augmented(steps, 4, 7)[0]), bits(once[0]));
  EXPECT_NE(bits(augmented(steps, 3, 8)[0]), bits(once[0]));
  // One sample alone, in another batch.
  std::vector<Tensor> one{Tensor(ElementType::f32, {1, 2, side, side}),
                          Tensor(ElementType::i64, {1, side, side}), Tensor(ElementType::i64, {1})};
  const std::vector<Tensor> whole = batch();
  const std::size_t row = one[0].byte_count();
  std::memcpy(one[0].bytes(), whole[0].bytes() + 5 * row, row);
  const std::int64_t five[] = {5};
  Augmenter(augmentations_from_text(steps), arrays, 7).apply(five, 3, one);
  EXPECT_EQ(bits(one[0]), bits(once[0]).substr(5 * row, row));
}

TEST(Augmentation, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const char* step, std::initializer_list<std::string> parts) {
    expect_error(ErrorCode::invalid_argument, parts,
                 [&] { Augmenter(augmentations_from_text(Texts{step}), arrays, 1); });
  };
  refused("flip-horizontal", {"--augment flip-horizontal", "names no array"});
  refused("x=flip", {"no step 'flip'", "flip-vertical"});
  refused("x=shift", {"'shift' needs an amount"});
  refused("x=shift:1.5", {"whole number"});
  refused("x=rotate:2", {"'rotate' has no amount"});
  refused("x=gain:1", {"leaves nothing"});
  refused("x=noise:0", {"above 0"});
  refused("x,x=rotate", {"'x' is given twice"});
  refused("y=rotate", {"no array 'y'", "mask"});
  refused("label=rotate", {"label=rotate", "no picture"});
  refused("mask=noise:1", {"'mask' are classes"});
  refused("x=cutout:5", {"is larger than a sample"});
}

class AugmentedRuns : public testing::Test {
 protected:
  void SetUp() override {
    const on::GraphParts parts{
        .nodes = {on::node("Flatten", {"x"}, {"flat"}), on::node("MatMul", {"flat", "A"}, {"y"})},
        .inputs = {on::port("x", on::f32, {"N", "1", "4", "4"})},
        .outputs = {on::port("y", on::f32, {"N", "3"})},
        .initializers = {on::floats("A", {16, 3}, std::vector<float>(48, 0.5f))}};
    std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
    Tensor x(ElementType::f32, {60, 1, 4, 4}), target(ElementType::f32, {60, 3});
    for (std::int64_t i = 0; i < x.element_count(); ++i) x.set(i, static_cast<double>(i * 31 % 97) / 97);
    for (std::int64_t i = 0; i < target.element_count(); ++i) target.set(i, static_cast<double>(i % 7));
    write_arrays(folder / "data.npz", {{"x", x}, {"target", target}});
  }
  Checkpoint trained(const char* out, Texts steps, TrainOptions options) {
    TrainSettings settings{.workload = (folder / "model.onnx").string(), .data = folder / "data.npz"};
    settings.augmentation = std::move(steps);
    settings.batch = 8, settings.replicas = 2, settings.epochs = 3, settings.learning_rate = 0.01;
    options.out = folder / out;
    train(settings, options);
    return test::newest_checkpoint(folder / out);
  }
  const ScratchFolder folder;
};

// Held or read as it goes, by any number of threads: the same bits; and others than without.
TEST_F(AugmentedRuns, HaveTheSameBitsHoweverTheyAreRead) {
  const Texts steps{"x=flip-horizontal", "x=noise:0.1"};
  const Checkpoint held = trained("held", steps, {.data_memory = 1e9});
  test::expect_same_states(trained("read", steps, {.data_memory = 1, .data_threads = 3}), held);
  const Checkpoint plain = trained("plain", {}, {});
  const Tensor &with = held.states.at("A"), &without = plain.states.at("A");
  EXPECT_NE(std::memcmp(with.bytes(), without.bytes(), with.byte_count()), 0);
}

TEST_F(AugmentedRuns, AWorkloadHasItsOwn) {
  expect_error(ErrorCode::invalid_argument, {"--augment", "'mlp' is a workload"},
               [] { train({.workload = "mlp", .augmentation = {"x=rotate"}}, {}); });
}

}  // namespace
}  // namespace superstep::run
