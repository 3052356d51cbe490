// Winograd's convolutions against sums in f64.
#include <gtest/gtest.h>

#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"
#include "tests/cpu_kernels/support/assumed_cache.h"
#include "tests/cpu_kernels/support/winograd_problem.h"

namespace superstep::kernels {
namespace {

int wrong_elements(std::vector<Sum> expected, double terms, const std::vector<double>& actual) {
  spread_magnitude(expected);
  return count_wrong(expected, terms, ElementType::f32, [&](std::size_t i) { return actual[i]; });
}

// With all tiles, products and instruction sets, against one reference.
void check_pass(const Convolution& c, const Pass& pass, std::uint64_t seed) {
  const Image &source = pass.forward ? c.x : c.y, &result = pass.forward ? c.y : c.x;
  const GuardedBuffer s = random_pixels(source, seed), w = random_weights(c, seed + 1);
  std::vector<Sum> expected = reference(pass, c, s, w);
  if (c.accumulate) {
    const std::vector<double> before = elements(result, random_pixels(result, seed + 2));
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i].add(before[i]);
  }
  for_each_variant([&](std::int64_t tile, ProductMaker maker) {
    const KernelPointer kernel = require_kernel(prepare_pass(pass, c, {tile}, maker));
    const GuardedBuffer u = packed(c, w, *kernel);
    GuardedBuffer r = random_pixels(result, seed + 2);
    run_kernel(*kernel, {s.data(), u.data()}, {r.data()});
    const double terms = static_cast<double>(c.window.taps() * source.channels);
    EXPECT_EQ(0, wrong_elements(expected, terms, elements(result, r)))
        << pass.name << ", " << kernel->info().name << ", seed " << seed << ": " << describe(c);
  });
}

std::vector<double> weight_gradient(const Convolution& c, const Kernel& kernel, const GuardedBuffer& x,
                                    const GuardedBuffer& dy) {
  const WeightTransfer transfer = weight_transfer(c, kernel.info().weights);
  GuardedBuffer dw(ElementType::f32, static_cast<std::int64_t>(packed_elements(transfer)));
  GuardedBuffer unpacked(ElementType::f32, dw.size());
  run_kernel(kernel, {x.data(), dy.data()}, {dw.data()});
  run_kernel(kernel, {x.data(), dy.data()}, {dw.data()});  // accumulates
  run_kernel(*require_kernel(prepare_unpack(transfer)), {dw.data()}, {unpacked.data()});
  std::vector<double> values;
  for (std::int64_t i = 0; i < unpacked.size(); ++i) values.push_back(unpacked.get(i));
  return values;
}

void check_weight_gradient(const Convolution& c, std::uint64_t seed) {
  const GuardedBuffer x = random_pixels(c.x, seed), dy = random_pixels(c.y, seed + 1);
  std::vector<Sum> expected = reference_weight_gradient(c, x, dy);
  for (Sum& sum : expected) sum = {2 * sum.value, 2 * sum.magnitude};
  const double terms = 2 * static_cast<double>(c.y.positions());
  for_each_variant([&](std::int64_t tile, ProductMaker maker) {
    const KernelPointer kernel = require_kernel(prepare_winograd_weight_gradient(c, {tile}, maker));
    const std::vector<double> actual = weight_gradient(c, *kernel, x, dy);
    EXPECT_EQ(0, wrong_elements(expected, terms, actual))
        << kernel->info().name << ", seed " << seed << ": " << describe(c);
  });
}

TEST(Winograd, agrees_with_the_oracle_whatever_the_shape) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    Convolution c = random_problem(seed);
    c.accumulate = seed % 4 == 0;
    for (const Pass& pass : passes) check_pass(c, pass, seed);
    check_weight_gradient(c, seed);
  }
}

// Many blocks of tiles, a block that ends within a row of tiles, samples cut among blocks.
TEST(Winograd, agrees_with_the_oracle_over_many_blocks) {
  const Convolution problems[] = {
      {.x = dense_image(17, 18, 1, 24), .y = dense_image(17, 18, 1, 72), .window = {3, 3, 1, 1, 1, 1, 1, 1}},
      {.x = dense_image(6, 5, 37, 33), .y = dense_image(4, 3, 37, 16), .window = {3, 3}}};
  for (const Convolution& c : problems) {
    for (const Pass& pass : passes) check_pass(c, pass, 7);
    check_weight_gradient(c, 7);
  }
}

// Blocks of one plane, of some and of all; planes that are only padding; a window of one plane.
TEST(Winograd, agrees_with_the_oracle_over_volumes) {
  const AssumedCache cache(512 << 10);
  const Convolution problems[] = {
      over_volume(12, 3, 1, dense_image(7, 6, 2, 24), 72), over_volume(5, 3, 1, dense_image(9, 5, 1, 16), 16),
      over_volume(11, 3, 1, dense_image(4, 4, 3, 8), 65),  over_volume(4, 3, 0, dense_image(8, 8, 1, 32), 32),
      over_volume(2, 3, 2, dense_image(5, 5, 1, 16), 32),  over_volume(6, 2, 0, dense_image(4, 9, 1, 16), 8),
      over_volume(6, 1, 0, dense_image(6, 5, 2, 16), 24),  over_volume(1, 7, 3, dense_image(6, 5, 1, 4), 3)};
  for (Convolution c : problems)
    for (const bool accumulate : {false, true}) {
      c.accumulate = accumulate;
      for (const Pass& pass : passes) check_pass(c, pass, 11);
    }
}

TEST(Winograd, takes_volumes_by_neighbouring_planes) {
  const auto refused = [](const Convolution& c, ConvolutionPass pass) { return winograd_fault(c, pass); };
  Convolution c = over_volume(8, 3, 1, dense_image(8, 8, 1, 16), 16);
  EXPECT_EQ("", refused(c, ConvolutionPass::forward));
  EXPECT_EQ("", refused(c, ConvolutionPass::input_gradient));
  EXPECT_EQ("the window goes over volumes", refused(c, ConvolutionPass::weight_gradient));
  c.window.dilation_d = 2, c.window.pad_front = 2;
  EXPECT_EQ("the window's planes lie apart", refused(c, ConvolutionPass::forward));
  c = over_volume(8, 3, 1, dense_image(8, 8, 1, 16), 16);
  c.window.stride_d = 2, c.y = dense_image(32, 8, 1, 16), c.y.planes = 4;
  EXPECT_EQ("the window moves by more than one plane", refused(c, ConvolutionPass::forward));
  c = over_volume(16, 9, 4, dense_image(8, 8, 1, 16), 16);
  EXPECT_EQ("the window is 9 planes deep", refused(c, ConvolutionPass::forward));
}

TEST(Winograd, the_epilogue_follows_each_element_once) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 12; ++seed)
      for (const std::int64_t tile : tiles) {
        Convolution c =
            seed == 11 ? over_volume(6, 3, 1, dense_image(7, 6, 2, 16), 72) : random_problem(seed);
        const ProductMaker maker = makers().front();
        const GuardedBuffer x = random_pixels(c.x, seed), w = random_weights(c, seed + 1);
        const KernelPointer plain = require_kernel(prepare_winograd_forward(c, {tile}, maker));
        c.epilogue.bias().add().activate(Activation::relu);
        const KernelPointer fused = require_kernel(prepare_winograd_forward(c, {tile}, maker));
        const GuardedBuffer u = packed(c, w, *fused), added = random_pixels(c.y, seed + 2);
        GuardedBuffer bias(ElementType::f32, c.y.channels);
        bias.fill_random(seed + 3);
        GuardedBuffer y = random_pixels(c.y, seed + 4), z = random_pixels(c.y, seed + 5);
        run_kernel(*plain, {x.data(), u.data()}, {y.data()});
        run_kernel(*fused, {x.data(), u.data(), bias.data(), added.data()}, {z.data()});
        int wrong = 0;
        for_each_element(c.y, [&](std::int64_t h, std::int64_t column, std::int64_t n, std::int64_t channel) {
          const std::int64_t at = address_of(c.y, h, column, n, channel);
          const float sum = static_cast<float>(y.get(at)) + static_cast<float>(bias.get(channel)) +
                            static_cast<float>(added.get(at));
          wrong += static_cast<double>(std::max(sum, 0.0f)) != z.get(at);
        });
        EXPECT_EQ(0, wrong) << fused->info().name << ", seed " << seed << ": " << describe(c);
      }
  });
}

// run_kernel runs in one piece and in parts by turns.
TEST(Winograd, a_run_in_parts_gives_the_same_bits) {
  const AssumedCache cache(512 << 10);
  const Convolution c{
      .x = dense_image(14, 14, 2, 96), .y = dense_image(14, 14, 2, 160), .window = {3, 3, 1, 1, 1, 1, 1, 1}};
  const GuardedBuffer x = random_pixels(c.x, 1), dy = random_pixels(c.y, 2), w = random_weights(c, 3);
  for (const std::int64_t tile : tiles) {
    const KernelPointer kernel = require_kernel(prepare_winograd_forward(c, {tile}, makers().front()));
    EXPECT_LT(4, kernel->info().parts);
    const GuardedBuffer u = packed(c, w, *kernel);
    GuardedBuffer y = random_pixels(c.y, 4), z = random_pixels(c.y, 5);
    run_kernel(*kernel, {x.data(), u.data()}, {y.data()});
    run_kernel(*kernel, {x.data(), u.data()}, {z.data()});
    EXPECT_EQ(elements(c.y, y), elements(c.y, z));
    const KernelPointer gradient =
        require_kernel(prepare_winograd_weight_gradient(c, {tile}, makers().front()));
    EXPECT_EQ(6, gradient->info().parts);
    GuardedBuffer a(ElementType::f32, c.x.channels * c.y.channels * 9), b(ElementType::f32, a.size());
    run_kernel(*gradient, {x.data(), dy.data()}, {a.data()});
    run_kernel(*gradient, {x.data(), dy.data()}, {b.data()});
    EXPECT_TRUE(std::equal(a.as<float>(), a.as<float>() + a.size(), b.as<float>()));
  }
}

TEST(Winograd, the_test_would_notice_a_wrong_weight) {
  const Convolution c{
      .x = dense_image(9, 10, 2, 16), .y = dense_image(9, 10, 2, 32), .window = {3, 3, 1, 1, 1, 1, 1, 1}};
  for (const std::int64_t tile : tiles) {
    for (const Pass& pass : passes) {
      const KernelPointer kernel = require_kernel(prepare_pass(pass, c, {tile}, makers().front()));
      const Image &source = pass.forward ? c.x : c.y, &result = pass.forward ? c.y : c.x;
      const GuardedBuffer s = random_pixels(source, 1);
      GuardedBuffer w = random_weights(c, 2);
      const GuardedBuffer u = packed(c, w, *kernel);
      GuardedBuffer r = random_pixels(result, 3);
      run_kernel(*kernel, {s.data(), u.data()}, {r.data()});
      w.set(4, w.get(4) + 1e-3);
      EXPECT_LT(0, wrong_elements(reference(pass, c, s, w), 9 * static_cast<double>(source.channels),
                                  elements(result, r)));
    }
    const KernelPointer kernel =
        require_kernel(prepare_winograd_weight_gradient(c, {tile}, makers().front()));
    const GuardedBuffer x = random_pixels(c.x, 1);
    GuardedBuffer dy = random_pixels(c.y, 2);
    const std::vector<double> actual = weight_gradient(c, *kernel, x, dy);
    dy.set(40, dy.get(40) + 1e-2);
    std::vector<Sum> expected = reference_weight_gradient(c, x, dy);
    for (Sum& sum : expected) sum = {2 * sum.value, 2 * sum.magnitude};
    EXPECT_LT(0, wrong_elements(expected, 2 * static_cast<double>(c.y.positions()), actual));
  }
}

Convolution same_size(std::int64_t side, std::int64_t batch, std::int64_t in, std::int64_t out) {
  return {.x = dense_image(side, side, batch, in),
          .y = dense_image(side, side, batch, out),
          .window = {3, 3, 1, 1, 1, 1, 1, 1}};
}

std::string chosen(const Prepared& kernel) {
  return kernel ? (*kernel)->info().name.substr(0, kernel.value()->info().name.find(')') + 1)
                : kernel.error().reason;
}

TEST(Winograd, is_chosen_where_it_is_estimated_to_be_faster) {
  if (available_instruction_sets().back() == InstructionSet::scalar) GTEST_SKIP() << "no vector instructions";
  using enum ConvolutionPass;
  EXPECT_EQ("convolution, Winograd F(4x4, 3x3)", chosen(prepare_winograd<forward>(same_size(32, 4, 64, 64))));
  EXPECT_EQ("input gradient, Winograd F(3x3, 3x3)",
            chosen(prepare_winograd<input_gradient>(same_size(9, 8, 64, 32))));
  EXPECT_EQ("weight gradient, Winograd F(4x4, 3x3)",
            chosen(prepare_winograd<weight_gradient>(same_size(32, 4, 64, 64))));
  // Too few channels for the transforms; too few positions for weights of megabytes.
  const auto refused = [](const Prepared& kernel) { return chosen(kernel).starts_with("estimated at "); };
  EXPECT_TRUE(refused(prepare_winograd<weight_gradient>(same_size(7, 8, 32, 8))));
  EXPECT_TRUE(refused(prepare_winograd<forward>(same_size(7, 1, 512, 512))));
  // Packed once a step, the weights of a single small image are not worth their transform.
  Convolution single = same_size(7, 1, 64, 32);
  EXPECT_FALSE(prepare_winograd<forward>(single));
  single.constant_weights = true;
  EXPECT_TRUE(prepare_winograd<forward>(single));
}

TEST(Winograd, refuses_what_it_cannot_do) {
  const auto reason = [](const Convolution& c) {
    return to_string(prepare_winograd_forward(c, {4}, ProductMaker::portable).error());
  };
  const Convolution fine = random_problem(1);
  Convolution c = fine;
  c.window.width = 5;
  EXPECT_EQ("winograd: the window is not 3 x 3", reason(c));
  c = fine;
  c.window.stride_w = 2;
  EXPECT_EQ("winograd: the window moves by more than one position", reason(c));
  c = fine;
  c.window.dilation_h = 2;
  EXPECT_EQ("winograd: the window's taps lie apart", reason(c));
  c = fine;
  c.x.channels = c.x.column_stride = c.y.channels = c.y.column_stride = 4;
  c.x = dense_image(4, 4, 1, 4), c.y = dense_image(4, 4, 1, 4);
  c.groups = 2;
  EXPECT_EQ("winograd: the channels are in groups", reason(c));
  EXPECT_EQ(
      "winograd: products in bf16 of an image in f32",
      to_string(prepare_winograd_forward(fine, {2, ElementType::bf16}, ProductMaker::portable).error()));
  EXPECT_EQ("winograd: no tiles of 5",
            to_string(prepare_winograd_forward(fine, {5}, ProductMaker::portable).error()));
  c = fine;
  c.accumulate = true;
  c.y.type = ElementType::bf16;
  EXPECT_EQ("winograd: only an f32 result can be added to; the epilogue's `add` reads bf16", reason(c));
}

}  // namespace
}  // namespace superstep::kernels
