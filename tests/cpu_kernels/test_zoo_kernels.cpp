// Kernels of normalisation, resampling, lookups and window columns against naive loops in double.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/convolution/window_columns.h"
#include "superstep/target/cpu/kernels/move/resample.h"
#include "superstep/target/cpu/kernels/rows/channel_statistics.h"
#include "superstep/target/cpu/kernels/rows/layer_normalization.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"

namespace superstep::kernels {
namespace {

std::int64_t draw(RandomStream& random, std::int64_t most) {
  return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
}

// Results further than `tolerance` from what is expected.
int far_off(const GuardedBuffer& actual, const std::vector<double>& expected, double tolerance) {
  int wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong += !(std::abs(actual.get(static_cast<std::int64_t>(i)) - expected[i]) <= tolerance);
  return wrong;
}

GuardedBuffer random_buffer(std::int64_t size, std::uint64_t seed, double low = -1, double high = 1) {
  GuardedBuffer buffer(ElementType::f32, size);
  buffer.fill_random(seed, low, high);
  return buffer;
}

GuardedBuffer empty_buffer(std::int64_t size) {
  GuardedBuffer buffer(ElementType::f32, size);
  buffer.fill(77);
  return buffer;
}

// A mean of 1000 beside a deviation of 1 must cost no digits of the variance.
TEST(ChannelStatistics, MomentsAreThoseOfTheDefinition) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomStream random(seed);
      const std::int64_t rows = draw(random, 300), channels = draw(random, 150);
      const double shift = seed % 2 ? 1000 : 0;
      GuardedBuffer x = random_buffer(rows * channels, seed, shift - 1, shift + 1);
      GuardedBuffer mean = empty_buffer(channels), variance = empty_buffer(channels);
      run_kernel(*require_kernel(prepare_channel_moments({.rows = rows, .channels = channels})), {x.data()},
                 {mean.data(), variance.data()});
      std::vector<double> means, variances;
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0, squares = 0;
        for (std::int64_t r = 0; r < rows; ++r) sum += x.get(r * channels + c);
        const double centre = sum / static_cast<double>(rows);
        for (std::int64_t r = 0; r < rows; ++r) squares += std::pow(x.get(r * channels + c) - centre, 2);
        means.push_back(centre);
        variances.push_back(squares / static_cast<double>(rows));
      }
      EXPECT_EQ(far_off(mean, means, 1e-6 + 1e-7 * shift), 0) << seed;
      EXPECT_EQ(far_off(variance, variances, 2e-6), 0) << seed;
      variances[0] += 1e-3;
      EXPECT_EQ(far_off(variance, variances, 2e-6), 1) << "a wrong variance is noticed";
    }
  });
}

TEST(ChannelStatistics, SumsAreThoseOfTheDefinition) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomStream random(seed);
      const std::int64_t rows = draw(random, 300), channels = draw(random, 150), gap = draw(random, 3);
      GuardedBuffer a = strided_buffer(ElementType::f32, {rows, channels}, {channels + gap, 1}),
                    b = strided_buffer(ElementType::f32, {rows, channels}, {channels + 2 * gap, 1}),
                    centre = random_buffer(channels, seed + 2);
      a.fill_random(seed), b.fill_random(seed + 1);
      GuardedBuffer sum = empty_buffer(channels), product = empty_buffer(channels);
      const ChannelStatistics s{
          .rows = rows, .channels = channels, .a_stride = channels + gap, .b_stride = channels + 2 * gap};
      run_kernel(*require_kernel(prepare_channel_sums(s)), {a.data(), b.data(), centre.data()},
                 {sum.data(), product.data()});
      std::vector<double> sums(static_cast<std::size_t>(channels)), products(sums.size());
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < channels; ++c) {
          const double value = a.get(r * (channels + gap) + c);
          sums[static_cast<std::size_t>(c)] += value;
          products[static_cast<std::size_t>(c)] += value * (b.get(r * s.b_stride + c) - centre.get(c));
        }
      EXPECT_EQ(far_off(sum, sums, 2e-5), 0) << seed;
      EXPECT_EQ(far_off(product, products, 3e-5), 0) << seed;
    }
  });
  EXPECT_EQ(prepare_channel_sums({.rows = 0}).error().reason, "there are no rows");
}

TEST(LayerNormalization, AgreesWithTheDefinitionBothWays) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomStream random(seed);
      const std::int64_t rows = draw(random, 9), length = 1 + draw(random, 130);
      const LayerNormalization n{.rows = rows, .length = length, .epsilon = 1e-3f};
      GuardedBuffer x = random_buffer(rows * length, seed), dy = random_buffer(rows * length, seed + 1),
                    scale = random_buffer(length, seed + 2), bias = random_buffer(length, seed + 3);
      GuardedBuffer y = empty_buffer(rows * length), dx = empty_buffer(rows * length),
                    ds = empty_buffer(length), db = empty_buffer(length);
      run_kernel(*require_kernel(prepare_layer_normalization(n)), {x.data(), scale.data(), bias.data()},
                 {y.data()});
      run_kernel(*require_kernel(prepare_layer_normalization_gradient(n)),
                 {dy.data(), x.data(), scale.data()}, {dx.data(), ds.data(), db.data()});
      const auto count = static_cast<double>(length);
      std::vector<double> ys, dxs, dss(static_cast<std::size_t>(length)), dbs(dss.size());
      for (std::int64_t r = 0; r < rows; ++r) {
        double mean = 0, variance = 0, g = 0, gn = 0;
        const auto at = [&](const GuardedBuffer& t, std::int64_t i) { return t.get(r * length + i); };
        for (std::int64_t i = 0; i < length; ++i) mean += at(x, i) / count;
        for (std::int64_t i = 0; i < length; ++i) variance += std::pow(at(x, i) - mean, 2) / count;
        const double inverse = 1 / std::sqrt(variance + 1e-3);
        const auto normal = [&](std::int64_t i) { return (at(x, i) - mean) * inverse; };
        for (std::int64_t i = 0; i < length; ++i) {
          g += at(dy, i) * scale.get(i) / count;
          gn += at(dy, i) * scale.get(i) * normal(i) / count;
        }
        for (std::int64_t i = 0; i < length; ++i) {
          ys.push_back(normal(i) * scale.get(i) + bias.get(i));
          dxs.push_back((at(dy, i) * scale.get(i) - g - normal(i) * gn) * inverse);
          dss[static_cast<std::size_t>(i)] += at(dy, i) * normal(i);
          dbs[static_cast<std::size_t>(i)] += at(dy, i);
        }
      }
      EXPECT_EQ(far_off(y, ys, 2e-5), 0) << seed;
      EXPECT_EQ(far_off(dx, dxs, 1e-4), 0) << seed;
      EXPECT_EQ(far_off(ds, dss, 2e-5), 0) << seed;
      EXPECT_EQ(far_off(db, dbs, 1e-5), 0) << seed;
    }
  });
  EXPECT_EQ(prepare_layer_normalization({.rows = 2, .length = 9, .x_stride = 5}).error().reason,
            "rows overlap");
}

// Strides of its own for every tensor, results over their sources, no bias: the bits of the plain case.
TEST(LayerNormalization, StridesAndPlacesChangeNoBit) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      RandomStream random(seed);
      const std::int64_t rows = draw(random, 9), length = 1 + draw(random, 130);
      const LayerNormalization dense{.rows = rows, .length = length};
      LayerNormalization spread = dense;
      spread.x_stride = length + draw(random, 4), spread.y_stride = length + draw(random, 4);
      spread.dx_stride = length + draw(random, 4);
      const auto tensor = [&](std::int64_t stride, std::uint64_t number) {
        GuardedBuffer t = strided_buffer(ElementType::f32, {rows, length}, {stride, 1});
        for (std::int64_t r = 0; r < rows; ++r) {
          const GuardedBuffer row =
              random_buffer(length, seed * 1000 + number * 100 + static_cast<std::uint64_t>(r));
          for (std::int64_t i = 0; i < length; ++i) t.set(r * stride + i, row.get(i));
        }
        return t;
      };
      const auto different = [&](const GuardedBuffer& a, std::int64_t a_stride, const GuardedBuffer& b,
                                 std::int64_t b_stride) {
        int count = 0;
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t i = 0; i < length; ++i)
            count += a.get(r * a_stride + i) != b.get(r * b_stride + i);
        return count;
      };
      GuardedBuffer x = tensor(length, 1), x_spread = tensor(spread.x_stride, 1), dy = tensor(length, 2),
                    dy_spread = tensor(spread.y_stride, 2);
      const GuardedBuffer scale = random_buffer(length, seed + 2), bias = random_buffer(length, seed + 3);
      GuardedBuffer dx = empty_buffer(rows * length), ds = empty_buffer(length), db = empty_buffer(length),
                    dx_spread = tensor(spread.dx_stride, 3), ds2 = empty_buffer(length),
                    db2 = empty_buffer(length);
      run_kernel(*require_kernel(prepare_layer_normalization_gradient(dense)),
                 {dy.data(), x.data(), scale.data()}, {dx.data(), ds.data(), db.data()});
      run_kernel(*require_kernel(prepare_layer_normalization_gradient(spread)),
                 {dy_spread.data(), x_spread.data(), scale.data()},
                 {dx_spread.data(), ds2.data(), db2.data()});
      EXPECT_EQ(0, different(dx, length, dx_spread, spread.dx_stride)) << seed;
      EXPECT_EQ(0, different(ds, 0, ds2, 0) + different(db, 0, db2, 0)) << seed;
      run_kernel(*require_kernel(prepare_layer_normalization_gradient(dense)),
                 {dy.data(), x.data(), scale.data()}, {dy.data(), ds2.data(), db2.data()});  // in place
      EXPECT_EQ(0, different(dx, length, dy, length)) << seed;

      GuardedBuffer y = empty_buffer(rows * length), y_spread = tensor(spread.y_stride, 4);
      run_kernel(*require_kernel(prepare_layer_normalization(dense)), {x.data(), scale.data(), bias.data()},
                 {y.data()});
      run_kernel(*require_kernel(prepare_layer_normalization(spread)),
                 {x_spread.data(), scale.data(), bias.data()}, {y_spread.data()});
      EXPECT_EQ(0, different(y, length, y_spread, spread.y_stride)) << seed;
      LayerNormalization plain = dense;
      plain.bias = false;
      run_kernel(*require_kernel(prepare_layer_normalization(plain)), {x.data(), scale.data()}, {x.data()});
      std::vector<double> expected;
      for (std::int64_t i = 0; i < rows * length; ++i) expected.push_back(y.get(i) - bias.get(i % length));
      EXPECT_EQ(far_off(x, expected, 1e-6), 0) << seed;
    }
  });
}

TEST(Resample, IsASparseMatrixAlongEachAxis) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomStream random(seed);
      const std::int64_t a = draw(random, 4), b = draw(random, 5), c = draw(random, 40),
                         out = draw(random, 7);
      std::vector<std::vector<ResampleTap>> taps(static_cast<std::size_t>(out));
      for (auto& line : taps)
        for (std::uint64_t k = random.below(4); k > 0; --k)
          line.push_back({draw(random, b) - 1, static_cast<float>(random.uniform(-1, 1))});
      GuardedBuffer x = random_buffer(a * b * c, seed), y = empty_buffer(a * out * c);
      run_kernel(*require_kernel(prepare(Resample{.extents = {a, b, c}, .passes = {{1, taps}}})), {x.data()},
                 {y.data()});
      std::vector<double> expected;
      for (std::int64_t i = 0; i < a; ++i)
        for (const auto& line : taps)
          for (std::int64_t k = 0; k < c; ++k) {
            double sum = 0;
            for (const ResampleTap& tap : line)
              sum += static_cast<double>(tap.weight) * x.get((i * b + tap.position) * c + k);
            expected.push_back(sum);
          }
      EXPECT_EQ(far_off(y, expected, 1e-6), 0) << seed;
    }
  });
  EXPECT_EQ(prepare(Resample{.extents = {3}, .passes = {{0, {{{3, 1.0f}}}}}}).error().reason,
            "a position lies outside");
}

// Two axes, in either order, in one piece and in parts: what one axis after the other gives.
TEST(Resample, TwoAxesInPartsAreOneAfterTheOther) {
  const auto random_taps = [](RandomStream& random, std::int64_t in, std::int64_t out) {
    std::vector<std::vector<ResampleTap>> taps(static_cast<std::size_t>(out));
    for (auto& line : taps)
      for (std::uint64_t k = random.below(3); k > 0; --k)
        line.push_back({draw(random, in) - 1, static_cast<float>(random.uniform(-1, 1))});
    return taps;
  };
  for_each_instruction_set([&] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomStream random(seed);
      const std::vector<std::int64_t> in{draw(random, 9), draw(random, 9), draw(random, 20)};
      std::vector<std::int64_t> extents = in;
      std::vector<ResamplePass> passes;
      for (int axis : {static_cast<int>(seed % 2), 1 - static_cast<int>(seed % 2)})
        passes.push_back({axis, random_taps(random, in[static_cast<std::size_t>(axis)], draw(random, 40))});
      GuardedBuffer x = random_buffer(in[0] * in[1] * in[2], seed);
      std::vector<GuardedBuffer> stages;
      for (const ResamplePass& pass : passes) {
        const KernelPointer alone = require_kernel(prepare(Resample{.extents = extents, .passes = {pass}}));
        extents[static_cast<std::size_t>(pass.axis)] = static_cast<std::int64_t>(pass.taps.size());
        GuardedBuffer y = empty_buffer(extents[0] * extents[1] * extents[2]);
        run_kernel(*alone, {stages.empty() ? x.data() : stages.back().data()}, {y.data()});
        stages.push_back(std::move(y));
      }
      const KernelPointer both = require_kernel(prepare(Resample{.extents = in, .passes = passes}));
      EXPECT_GT(both->info().parts, extents[0] > 1 ? 1 : 0);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < stages[1].size(); ++i) expected.push_back(stages[1].get(i));
      for (int turn = 0; turn < 2; ++turn) {  // in one piece, and in parts
        GuardedBuffer y = empty_buffer(stages[1].size());
        run_kernel(*both, {x.data()}, {y.data()});
        EXPECT_EQ(far_off(y, expected, 1e-6), 0) << seed;
      }
    }
  });
}

WindowColumns random_window_columns(std::uint64_t seed) {
  RandomStream random(seed);
  WindowColumns w{.height = draw(random, 3),
                  .width = draw(random, seed % 2 == 0 ? 9 : 70),
                  .batch = draw(random, 3),
                  .channels = seed % 3 == 0 ? 3 : draw(random, 4)};
  w.column = draw(random, 2), w.row = w.width * w.column + draw(random, 2);  // NCHW, with gaps
  w.channel = w.height * w.row + draw(random, 2), w.sample = w.channels * w.channel + draw(random, 2);
  w.window = {.width = draw(random, 7), .stride_w = draw(random, 2), .dilation_w = draw(random, 2)};
  w.window.pad_left = draw(random, w.window.width) - 1;
  w.outputs = draw(random, w.width);
  return w;
}

// Elements that are not the tap that belongs there, `shift` columns to the right of it.
int wrong_columns(const WindowColumns& w, std::int64_t shift, std::uint64_t seed) {
  GuardedBuffer x = strided_buffer(ElementType::f32, {w.batch, w.channels, w.height, w.width},
                                   {w.sample, w.channel, w.row, w.column});
  x.fill_random(seed);
  GuardedBuffer y = empty_buffer(w.height * w.outputs * w.batch * w.window.width * w.channels);
  run_kernel(*require_kernel(prepare(w)), {x.data()}, {y.data()});
  std::vector<double> expected;
  for (std::int64_t h = 0; h < w.height; ++h)
    for (std::int64_t o = 0; o < w.outputs; ++o)
      for (std::int64_t n = 0; n < w.batch; ++n)
        for (std::int64_t k = 0; k < w.window.width; ++k)
          for (std::int64_t c = 0; c < w.channels; ++c) {
            const std::int64_t column =
                o * w.window.stride_w + k * w.window.dilation_w - w.window.pad_left + shift;
            const bool inside = column >= 0 && column < w.width;
            expected.push_back(inside ? x.get(n * w.sample + c * w.channel + h * w.row + column * w.column)
                                      : 0);
          }
  return far_off(y, expected, 0);
}

TEST(WindowColumns, HoldTheTapsOfEveryWindow) {
  for_each_instruction_set([] {
    int shifted = 0;
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
      EXPECT_EQ(wrong_columns(random_window_columns(seed), 0, seed), 0) << seed;
      shifted += wrong_columns(random_window_columns(seed), 1, seed) > 0;
    }
    EXPECT_GT(shifted, 60);
  });
}

}  // namespace
}  // namespace superstep::kernels
