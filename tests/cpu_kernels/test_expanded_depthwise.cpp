#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/depthwise/expanded_depthwise.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

GuardedBuffer random_buffer(std::int64_t elements, std::uint64_t seed) {
  GuardedBuffer buffer(ElementType::f32, elements);
  buffer.fill_random(seed);
  return buffer;
}

GuardedBuffer packed(const Convolution& c, const GuardedBuffer& w, WeightLayout layout,
                     ElementType type = ElementType::f32) {
  const WeightTransfer transfer = weight_transfer(c, layout, WeightOrder::out_in_taps, type);
  GuardedBuffer buffer(type, static_cast<std::int64_t>(packed_elements(transfer)));
  run_kernel(*require_kernel(prepare_pack(transfer)), {w.data()}, {buffer.data()});
  return buffer;
}

constexpr float lowest = -0.25f, highest = 0.5f;  // of clips

double activated(double v, Activation activation) {
  if (activation == Activation::relu) return std::max(v, 0.0);
  if (activation == Activation::clip) return std::clamp<double>(v, lowest, highest);
  if (activation == Activation::silu) return v / (1 + std::exp(-v));
  if (activation == Activation::hard_swish) return v * std::clamp(v / 6 + 0.5, 0.0, 1.0);
  return v;
}

constexpr Activation activations[] = {Activation::relu, Activation::clip, Activation::silu,
                                      Activation::hard_swish};

// Small images, and wide ones whose expansion is cut into strips.
ExpandedDepthwise random_pair(std::uint64_t seed, Activation activation) {
  RandomStream random(seed);
  const auto one_to = [&](std::uint64_t bound) { return 1 + static_cast<std::int64_t>(random.below(bound)); };
  static constexpr std::int64_t many[] = {2, 16, 40, 64, 70, 130};
  const bool wide = seed % 12 == 0;
  const std::int64_t channels = wide ? 70 : many[random.below(std::size(many))];
  const std::int64_t in = one_to(wide ? 4 : 20), batch = one_to(wide ? 1 : 3);
  const std::int64_t height = wide ? 20 : one_to(12), width = wide ? 130 : one_to(16);
  ExpandedDepthwise pair;
  Convolution &e = pair.expand, &d = pair.depthwise;
  Window& w = d.window;
  w = {one_to(5), one_to(5), one_to(2), one_to(2), one_to(2), one_to(2), 0, 0};
  w.pad_top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(w.height)));
  w.pad_left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(w.width)));
  const auto extent = [](std::int64_t input, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                         std::int64_t pad) {
    return std::max<std::int64_t>(1, (input + 2 * pad - (taps - 1) * dilation - 1) / stride + 1);
  };
  e.x = dense_image(height, width, batch, in);
  if (seed % 4 == 1) {
    e.x.column_stride += one_to(3);
    e.x.row_stride = e.x.columns() * e.x.column_stride;
  }
  e.y = d.x = dense_image(height, width, batch, channels);
  d.y = dense_image(extent(height, w.height, w.stride_h, w.dilation_h, w.pad_top),
                    extent(width, w.width, w.stride_w, w.dilation_w, w.pad_left), batch, channels);
  d.y.column_stride += static_cast<std::int64_t>(random.below(3));
  d.y.row_stride = d.y.columns() * d.y.column_stride + static_cast<std::int64_t>(random.below(3));
  d.groups = channels;
  e.epilogue.bias().activate(activation, lowest, highest);
  if (seed % 3 != 0) d.epilogue.bias();
  if (seed % 2 == 0) d.epilogue.activate(activation, lowest, highest);
  return pair;
}

// The same with images of bf16: x of an even number of channels, y of bf16 or f32.
ExpandedDepthwise random_narrow_pair(std::uint64_t seed, Activation activation) {
  ExpandedDepthwise pair = random_pair(seed, activation);
  Convolution &e = pair.expand, &d = pair.depthwise;
  e.x.channels += e.x.channels % 2;
  e.x.column_stride = std::max(e.x.column_stride, e.x.channels);
  e.x.row_stride = e.x.columns() * e.x.column_stride;
  e.x.type = e.y.type = d.x.type = ElementType::bf16;
  if (seed % 5 != 0) d.y.type = ElementType::bf16;
  return pair;
}

struct Parameters {
  GuardedBuffer w_e, bias_e, w_d, bias_d;
};

// Weights of an expansion in bf16 are such that packing leaves them as they are.
Parameters random_parameters(const ExpandedDepthwise& pair, std::uint64_t seed) {
  const std::int64_t channels = pair.depthwise.x.channels;
  const Window& w = pair.depthwise.window;
  Parameters p{random_buffer(channels * pair.expand.x.channels, seed + 1), random_buffer(channels, seed + 2),
               random_buffer(channels * w.height * w.width, seed + 3), random_buffer(channels, seed + 4)};
  if (pair.expand.x.type == ElementType::bf16)
    for (std::int64_t i = 0; i < p.w_e.size(); ++i)
      p.w_e.set(i, static_cast<double>(static_cast<float>(bf16(p.w_e.as<float>()[i]))));
  return p;
}

// The two convolutions one after the other.
std::vector<Sum> reference(const ExpandedDepthwise& pair, const Parameters& p, const GuardedBuffer& x,
                           Activation activation) {
  const std::int64_t channels = pair.depthwise.x.channels;
  GuardedBuffer between(ElementType::f32, extent_of(pair.depthwise.x));
  const std::vector<Sum> sums = reference_forward(pair.expand, x, p.w_e);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    between.set(at, activated(sums[i].value + p.bias_e.get(at % channels), activation));
  }
  std::vector<Sum> result = reference_forward(pair.depthwise, between, p.w_d);
  for (std::size_t i = 0; i < result.size(); ++i) {
    Sum& sum = result[i];
    sum.magnitude = 10 * (sum.magnitude + 1);  // what the expansion rounds, with up to 20 terms, counts too
    for (const EpilogueStep& step : pair.depthwise.epilogue.steps)
      sum.value = step.op == EpilogueOp::bias
                      ? sum.value + p.bias_d.get(static_cast<std::int64_t>(i) % channels)
                      : activated(sum.value, activation);
  }
  return result;
}

int wrong_elements(const ExpandedDepthwise& pair, Activation activation, std::uint64_t seed,
                   double error = 0) {
  GuardedBuffer x = image_buffer(pair.expand.x), y = image_buffer(pair.depthwise.y);
  x.fill_random(seed), y.fill_random(seed + 5);
  const Parameters p = random_parameters(pair, seed);
  const GuardedBuffer w_e = packed(pair.expand, p.w_e, expansion_layout(pair), pair.expand.x.type);
  const GuardedBuffer w_d = packed(pair.depthwise, p.w_d, WeightLayout::taps_channels);
  std::vector<const void*> inputs{x.data(), w_e.data(), p.bias_e.data(), w_d.data()};
  if (pair.depthwise.epilogue.inputs() > 0) inputs.push_back(p.bias_d.data());
  run_kernel(*require_kernel(prepare(pair)), inputs, {y.data()});
  std::vector<double> actual;
  for_each_element(pair.depthwise.y, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    actual.push_back(y.get(address_of(pair.depthwise.y, h, w, n, c)) + error);
  });
  return count_wrong(reference(pair, p, x, activation), 30, pair.depthwise.y.type,
                     [&](std::size_t i) { return actual[i]; });
}

TEST(ExpandedDepthwise, agrees_with_the_two_convolutions_whatever_the_shape) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      const Activation activation = activations[seed % std::size(activations)];
      const ExpandedDepthwise pair = random_pair(seed, activation);
      EXPECT_EQ(wrong_elements(pair, activation, seed), 0)
          << "seed " << seed << ": " << describe(pair.depthwise);
    }
  });
}

// What lies between is not rounded: results are within the rounding of f32 sums, and of y's type.
TEST(ExpandedDepthwise, agrees_with_the_two_convolutions_in_bf16) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      const Activation activation = activations[seed % std::size(activations)];
      const ExpandedDepthwise pair = random_narrow_pair(seed, activation);
      EXPECT_EQ(wrong_elements(pair, activation, seed), 0)
          << "seed " << seed << ": " << describe(pair.depthwise);
    }
  });
}

TEST(ExpandedDepthwise, a_wrong_result_in_bf16_is_noticed) {
  const ExpandedDepthwise pair = random_narrow_pair(5, Activation::silu);
  ASSERT_EQ(pair.depthwise.y.type, ElementType::f32);
  EXPECT_EQ(wrong_elements(pair, Activation::silu, 5, 1e-2), pair.depthwise.y.element_count());
}

TEST(ExpandedDepthwise, a_wrong_result_is_noticed) {
  const ExpandedDepthwise pair = random_pair(1, Activation::silu);
  EXPECT_EQ(wrong_elements(pair, Activation::silu, 1, 1e-2), pair.depthwise.y.element_count());
}

TEST(ExpandedDepthwise, cuts_a_large_image_into_strips) {
  const KernelPointer kernel = require_kernel(prepare(random_pair(12, Activation::relu)));
  EXPECT_EQ(kernel->info().name.find(" 1 strips"), std::string::npos) << kernel->info().name;
  EXPECT_LE(kernel->info().scratch_bytes, 512u * 1024);
}

TEST(ExpandedDepthwise, says_what_it_does_not_take) {
  const auto reason = [](const auto& change) {
    ExpandedDepthwise pair = random_pair(1, Activation::silu);
    change(pair);
    const Prepared kernel = prepare(pair);
    return kernel ? "taken" : kernel.error().reason;
  };
  EXPECT_EQ(reason([](ExpandedDepthwise& p) { p.expand.epilogue.add(); }), "an epilogue reads a tensor");
  EXPECT_EQ(reason([](ExpandedDepthwise& p) { p.depthwise.epilogue.activate(Activation::tanh); }),
            "the depthwise loop has no such epilogue");
  EXPECT_EQ(reason([](ExpandedDepthwise& p) { p.expand.window.height = 3; }),
            "the expansion is not pointwise");
  EXPECT_EQ(reason([](ExpandedDepthwise& p) { p.expand.x.type = ElementType::f16; }),
            "images must be f32 or bf16");
  EXPECT_EQ(
      reason([](ExpandedDepthwise& p) { p.expand.x.type = ElementType::bf16, p.expand.x.channels = 3; }),
      "an odd channel of x has no pair");
  EXPECT_EQ(reason([](ExpandedDepthwise& p) { p.depthwise.groups = 1; }), "the second one is not depthwise");
}

}  // namespace
}  // namespace superstep::kernels
