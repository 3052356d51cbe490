// Gradients of planar convolutions by their weights, against loops in f64 over random shapes, windows and
// parts.
#include <gtest/gtest.h>

#include <limits>

#include "superstep/target/cpu/kernels/convolution/planar_gradient.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/planes.h"

namespace superstep::kernels {
namespace {

PlanarWeightGradient random_gradient(std::uint64_t seed) {
  RandomStream random(seed);
  PlanarWeightGradient g;
  g.batch = pick(random, 1, 3);
  const auto [window, height, width, rows, columns] = random_window(random);
  g.window = window;
  g.x = random_planes(random, pick(random, 1, 4), height, width, g.batch);
  for (std::int64_t parts = pick(random, 1, 3); parts > 0; --parts)
    g.parts.push_back(
        {random_planes(random, pick(random, 1, 4), rows, columns, g.batch), random.below(2) == 0});
  return g;
}

struct Problem {
  Problem(const PlanarWeightGradient& gradient, std::uint64_t seed)
      : g(gradient), x(planes_buffer(g.x, g.batch, g.x.type)) {
    x.fill_random(seed);
    inputs.push_back(x.data());
    for (const auto& part : g.parts) {
      dy.push_back(planes_buffer(part.dy, g.batch, part.dy.type));
      dy.back().fill_random(++seed);
      dw.emplace_back(ElementType::f32, part.dy.channels * g.x.channels * g.window.taps());
      dw.back().fill(before);
    }
    for (GuardedBuffer& buffer : dy) inputs.push_back(buffer.data());
    for (GuardedBuffer& buffer : dw) outputs.push_back(buffer.data());
  }

  Sum expected(std::size_t part, std::int64_t o, std::int64_t i, std::int64_t kh, std::int64_t kw) const {
    const Window& w = g.window;
    const Planes& p = g.parts[part].dy;
    Sum sum;
    if (g.parts[part].accumulate) sum.add(before);
    for (std::int64_t n = 0; n < g.batch; ++n)
      for (std::int64_t row = 0; row < p.height; ++row)
        for (std::int64_t column = 0; column < p.width; ++column) {
          const std::int64_t h = row * w.stride_h + kh * w.dilation_h - w.pad_top,
                             v = column + kw * w.dilation_w - w.pad_left;
          if (h < 0 || h >= g.x.height || v < 0 || v >= g.x.width) continue;
          sum.add(x.get(address(g.x, n, i, h, v)) * dy[part].get(address(p, n, o, row, column)));
        }
    return sum;
  }

  // Elements that are not what they should be, after adding `error` to all of them.
  int wrong(double error = 0) const {
    int count = 0;
    for (std::size_t part = 0; part < g.parts.size(); ++part) {
      const Planes& p = g.parts[part].dy;
      std::int64_t at = 0;
      for (std::int64_t o = 0; o < p.channels; ++o)
        for (std::int64_t i = 0; i < g.x.channels; ++i)
          for (std::int64_t kh = 0; kh < g.window.height; ++kh)
            for (std::int64_t kw = 0; kw < g.window.width; ++kw) {
              const Sum sum = expected(part, o, i, kh, kw);
              const double terms = static_cast<double>(g.batch * p.height * p.width + 1);
              count += !(std::abs(dw[part].get(at++) + error - sum.value) <= allowed_error(sum, terms));
            }
    }
    return count;
  }

  static constexpr double before = 0.5;  // what the results hold before the run
  PlanarWeightGradient g;
  GuardedBuffer x;
  std::vector<GuardedBuffer> dy, dw;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

TEST(PlanarGradient, AgreesWithLoopsWhateverTheShape) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      Problem problem(random_gradient(seed), seed);
      run_kernel(*require_kernel(prepare(problem.g)), problem.inputs, problem.outputs);
      EXPECT_EQ(problem.wrong(), 0) << "seed " << seed;
    }
  });
}

// Without this a comparison that finds nothing would say nothing.
TEST(PlanarGradient, AWrongSumIsNoticed) {
  Problem problem(random_gradient(7), 7);
  run_kernel(*require_kernel(prepare(problem.g)), problem.inputs, problem.outputs);
  EXPECT_EQ(problem.wrong(), 0);
  std::int64_t elements = 0;
  for (const GuardedBuffer& dw : problem.dw) elements += dw.size();
  EXPECT_EQ(problem.wrong(1e-2), elements);
}

// Columns of the image behind the last window are nobody's, whatever they hold.
TEST(PlanarGradient, WhatNoWindowReadsIsNotRead) {
  const Planes x{.channels = 1, .height = 3, .width = 40, .sample = 120, .channel = 120, .row = 40};
  const Planes dy{.channels = 1, .height = 3, .width = 21, .sample = 63, .channel = 63, .row = 21};
  Problem problem({.batch = 1, .x = x, .window = {.height = 1, .width = 3}, .parts = {{dy}}}, 5);
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t column = 23; column < 40; ++column)
      problem.x.set(row * 40 + column, std::numeric_limits<double>::infinity());
  run_kernel(*require_kernel(prepare(problem.g)), problem.inputs, problem.outputs);
  EXPECT_EQ(problem.wrong(), 0);
}

TEST(PlanarGradient, JoinedTheyMakeTheSame) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const PlanarWeightGradient all = random_gradient(seed);
    if (all.parts.size() < 2) continue;
    ++tried;
    PlanarWeightGradient first = all, others = all;
    first.parts.resize(1);
    others.parts.erase(others.parts.begin());
    const auto both = joined_gradients(*require_kernel(prepare(first)), *require_kernel(prepare(others)));
    ASSERT_TRUE(both);
    Problem problem(*both, seed);
    run_kernel(*require_kernel(prepare(*both)), problem.inputs, problem.outputs);
    EXPECT_EQ(problem.wrong(), 0) << "seed " << seed;
    others.window.pad_left += 1;
    EXPECT_FALSE(joined_gradients(*require_kernel(prepare(first)), *require_kernel(prepare(others))));
  }
  EXPECT_GT(tried, 10);
}

TEST(PlanarGradient, SaysWhyItRefuses) {
  const PlanarWeightGradient g = random_gradient(1);
  const auto reason = [](const PlanarWeightGradient& refused) {
    const Prepared kernel = prepare(refused);
    return kernel ? std::string("none") : to_string(kernel.error());
  };
  EXPECT_EQ(reason(g), "none");
  PlanarWeightGradient strided = g;
  strided.window.stride_w = 2;
  EXPECT_EQ(reason(strided), "planes: the window goes on by more than a column");
  PlanarWeightGradient wide = g;
  wide.parts[0].dy.channels = 5;
  EXPECT_EQ(reason(wide), "planes: more than 4 channels");
  PlanarWeightGradient none = g;
  none.parts.clear();
  EXPECT_EQ(reason(none), "planes: there is no cotangent");
  PlanarWeightGradient other = g;
  other.parts.push_back(other.parts[0]);
  other.parts.back().dy.height += 1;
  EXPECT_EQ(reason(other), "planes: the cotangents are not of the same extents");
}

}  // namespace
}  // namespace superstep::kernels
