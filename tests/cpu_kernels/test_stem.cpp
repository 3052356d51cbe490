// First convolutions of pictures against loops in f64 over random shapes, windows and what follows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/convolution/stem.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

constexpr float lowest = -0.25f, highest = 0.5f;  // of clips

double activated(double v, Activation activation) {
  switch (activation) {
    case Activation::relu: return std::max(v, 0.0);
    case Activation::clip: return std::clamp<double>(v, lowest, highest);
    case Activation::silu: return v / (1 + std::exp(-v));
    case Activation::hard_swish: return v * std::clamp(v / 6 + 0.5, 0.0, 1.0);
    default: return v;
  }
}

// Pictures with gaps, windows that reach beyond them, rows of fewer and more results than are made together.
StemConvolution random_stem(std::uint64_t seed) {
  RandomStream random(seed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  static constexpr std::int64_t outputs[] = {12, 15, 16, 24, 31, 32, 48, 61, 64};
  StemConvolution stem;
  Convolution& c = stem.convolution;
  c.x = dense_image(pick(1, 12), pick(1, 60), pick(1, 3), pick(1, 4));
  Window& w = c.window;
  w = {.height = pick(1, 7), .width = pick(2, 7), .stride_h = pick(1, 3), .stride_w = pick(1, 3)};
  w.dilation_h = pick(1, 2), w.dilation_w = pick(1, 2);
  w.pad_top = pick(0, w.height), w.pad_left = pick(0, w.width);
  const auto extent = [](std::int64_t input, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                         std::int64_t pad) {
    return std::max<std::int64_t>(1, (input + 2 * pad - (taps - 1) * dilation - 1) / stride + 1);
  };
  c.y = dense_image(extent(c.x.height, w.height, w.stride_h, w.dilation_h, w.pad_top),
                    extent(c.x.width, w.width, w.stride_w, w.dilation_w, w.pad_left), c.x.batch,
                    outputs[random.below(std::size(outputs))]);
  if (seed % 3 == 0) c.y.type = ElementType::bf16;
  c.y.column_stride += pick(0, 2);
  c.y.row_stride = c.y.columns() * c.y.column_stride + pick(0, 3);
  stem.x = {.channels = c.x.channels, .height = c.x.height, .width = c.x.width};
  stem.x.row = c.x.width + pick(0, 2);
  stem.x.channel = c.x.height * stem.x.row + pick(0, 2);
  stem.x.sample = c.x.channels * stem.x.channel;
  static constexpr Activation last[] = {Activation::relu, Activation::clip, Activation::silu,
                                        Activation::hard_swish};
  if (seed % 2 == 0) c.epilogue.bias();
  if (seed % 5 != 0) c.epilogue.activate(last[seed % 4], lowest, highest);
  return stem;
}

int wrong_elements(const StemConvolution& stem, std::uint64_t seed, double error = 0) {
  const Convolution& c = stem.convolution;
  const Planes& planes = stem.x;
  GuardedBuffer image = image_buffer(c.x), y = image_buffer(c.y), bias(ElementType::f32, c.y.channels);
  GuardedBuffer x(ElementType::f32, (c.x.batch - 1) * planes.sample + (planes.channels - 1) * planes.channel +
                                        (planes.height - 1) * planes.row + planes.width);
  std::vector<bool> named(static_cast<std::size_t>(x.size()), false);
  const auto address = [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t channel) {
    return n * planes.sample + channel * planes.channel + h * planes.row + w;
  };
  for_each_element(c.x, [&](auto h, auto w, auto n, auto channel) {
    named[static_cast<std::size_t>(address(h, w, n, channel))] = true;
  });
  x.keep_to(named);
  image.fill_random(seed), bias.fill_random(seed + 1), y.fill_random(seed + 2);
  for_each_element(c.x, [&](auto h, auto w, auto n, auto channel) {
    x.set(address(h, w, n, channel), image.get(address_of(c.x, h, w, n, channel)));
  });
  GuardedBuffer w(ElementType::f32, c.y.channels * c.x.channels * c.window.taps());
  w.fill_random(seed + 3);
  const KernelPointer kernel = require_kernel(prepare(stem));
  const WeightTransfer transfer = weight_transfer(c, kernel->info().weights);
  GuardedBuffer packed(ElementType::f32, static_cast<std::int64_t>(packed_elements(transfer)));
  run_kernel(*require_kernel(prepare_pack(transfer)), {w.data()}, {packed.data()});
  std::vector<const void*> inputs{x.data(), packed.data()};
  if (c.epilogue.inputs() > 0) inputs.push_back(bias.data());
  run_kernel(*kernel, inputs, {y.data()});
  std::vector<Sum> expected = reference_forward(c, image, w);
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (const EpilogueStep& step : c.epilogue.steps)
      if (step.op == EpilogueOp::bias)
        expected[i].add(bias.get(static_cast<std::int64_t>(i) % c.y.channels));
      else
        expected[i].value = activated(expected[i].value, step.activation);
  std::vector<double> actual;
  for_each_element(c.y, [&](auto h, auto column, auto n, auto channel) {
    actual.push_back(y.get(address_of(c.y, h, column, n, channel)) + error);
  });
  return count_wrong(expected, static_cast<double>(c.x.channels * c.window.taps()), c.y.type,
                     [&](std::size_t i) { return actual[i]; });
}

TEST(FirstConvolution, agrees_with_the_oracle_whatever_the_shape) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const StemConvolution stem = random_stem(seed);
      if (!prepare(stem)) continue;  // which outputs leave vectors empty depends on the instruction set
      EXPECT_EQ(wrong_elements(stem, seed), 0) << "seed " << seed << ": " << describe(stem.convolution);
    }
  });
}

TEST(FirstConvolution, a_wrong_result_is_noticed) {
  const StemConvolution stem = random_stem(1);
  EXPECT_EQ(wrong_elements(stem, 1, 1e-2), stem.convolution.y.element_count());
}

TEST(FirstConvolution, says_what_it_does_not_take) {
  const auto reason = [](const auto& change) {
    StemConvolution stem = random_stem(1);
    stem.convolution.y.channels = stem.convolution.y.column_stride = 64;
    stem.convolution.y.row_stride = stem.convolution.y.columns() * 64;
    change(stem);
    const Prepared kernel = prepare(stem);
    return kernel ? "taken" : kernel.error().reason;
  };
  EXPECT_EQ(reason([](StemConvolution&) {}), "taken");
  EXPECT_EQ(reason([](StemConvolution& s) { s.convolution.epilogue.activate(Activation::tanh); }),
            "the loop has no such epilogue");
  EXPECT_EQ(reason([](StemConvolution& s) { s.x.type = ElementType::bf16; }), "the picture is not f32");
  EXPECT_EQ(reason([](StemConvolution& s) { s.x.height += 1; }), "the planes are another picture's");
  EXPECT_EQ(reason([](StemConvolution& s) {
              s.convolution.y.channels = s.convolution.y.column_stride = 65;
              s.convolution.y.row_stride = s.convolution.y.columns() * 65;
            }),
            "more outputs than a panel of weights has");
}

}  // namespace
}  // namespace superstep::kernels
