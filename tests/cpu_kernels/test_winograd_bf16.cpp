// Winograd's convolutions of bf16 images against sums in f64: with products in f32, which are as exact as
// those of f32 images, and with products in bf16, whose error is known as a share of the result.
#include <gtest/gtest.h>

#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"
#include "tests/cpu_kernels/support/assumed_cache.h"
#include "tests/cpu_kernels/support/assumed_pair_rate.h"
#include "tests/cpu_kernels/support/winograd_problem.h"

namespace superstep::kernels {
namespace {

constexpr ElementType both_products[] = {ElementType::f32, ElementType::bf16};

// Of a result of products and images as they are: what the f32 sums are allowed, twelve times the expected
// root mean square of rounding to bf16 (six where it is worst in a tile), and the result's own rounding. The
// terms are products of uniform values in (-1, 1), whose mean magnitude is 1/4 and whose root mean square is
// 1/3.
class Tolerance {
 public:
  Tolerance(const WinogradForm& form, const std::vector<Sum>& expected, double terms, ElementType result)
      : terms_(terms), result_(result), largest_(largest_magnitude(expected)) {
    if (form.products != ElementType::bf16) return;
    noise_ = 12 * winograd_bf16_noise(form.tile) * std::sqrt(4 * largest_) / 3;
  }

  bool admits(const Sum& expected, double actual) const {
    const Sum spread{expected.value, winograd_error_growth * largest_};
    return std::abs(actual - expected.value) <= noise_ + allowed_error(spread, terms_, result_);
  }

 private:
  double terms_;
  ElementType result_;
  double largest_, noise_ = 0;
};

int count_outside(const Tolerance& tolerance, const std::vector<Sum>& expected,
                  const std::vector<double>& actual) {
  int wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!tolerance.admits(expected[i], actual[i]) && wrong++ == 0)
      std::printf("element %zu: %.9g, expected %.9g\n", i, actual[i], expected[i].value);
  return wrong;
}

// body(form, maker) under each instruction set.
template <class Body>
void for_each_form(const Body& body) {
  for_each_instruction_set([&] {
    for (const std::int64_t tile : tiles) {
      body(WinogradForm{tile, ElementType::f32}, makers().front());
      body(WinogradForm{tile, ElementType::bf16}, ProductMaker::portable);
    }
  });
  if (instruction_set() < InstructionSet::avx512_bf16) return;
  for (const std::int64_t tile : tiles) body(WinogradForm{tile, ElementType::bf16}, ProductMaker::libxsmm);
}

std::vector<double> run_pass(const Pass& pass, const Convolution& c, const Kernel& kernel,
                             const GuardedBuffer& source, const GuardedBuffer& w) {
  const Image& result = pass.forward ? c.y : c.x;
  const GuardedBuffer u = packed(c, w, kernel);
  GuardedBuffer r = random_pixels(result, 99);
  run_kernel(kernel, {source.data(), u.data()}, {r.data()});
  return elements(result, r);
}

void check_pass(const Convolution& c, const Pass& pass, std::uint64_t seed) {
  const Image &source = pass.forward ? c.x : c.y, &result = pass.forward ? c.y : c.x;
  const GuardedBuffer s = random_pixels(source, seed), w = random_weights(c, seed + 1);
  const std::vector<Sum> expected = reference(pass, c, s, w);
  const double terms = static_cast<double>(c.window.taps() * source.channels);
  for_each_form([&](const WinogradForm& form, ProductMaker maker) {
    const KernelPointer kernel = require_kernel(prepare_pass(pass, c, form, maker));
    EXPECT_EQ(0, count_outside(Tolerance(form, expected, terms, result.type), expected,
                               run_pass(pass, c, *kernel, s, w)))
        << pass.name << ", " << kernel->info().name << ", seed " << seed << ": " << describe(c);
  });
}

std::vector<double> weight_gradient(const Convolution& c, const Kernel& kernel, const GuardedBuffer& x,
                                    const GuardedBuffer& dy) {
  const WeightTransfer transfer = weight_transfer(c, kernel.info().weights);
  GuardedBuffer dw(ElementType::f32, static_cast<std::int64_t>(packed_elements(transfer)));
  GuardedBuffer unpacked(ElementType::f32, dw.size());
  run_kernel(kernel, {x.data(), dy.data()}, {dw.data()});
  run_kernel(*require_kernel(prepare_unpack(transfer)), {dw.data()}, {unpacked.data()});
  std::vector<double> values;
  for (std::int64_t i = 0; i < unpacked.size(); ++i) values.push_back(unpacked.get(i));
  return values;
}

void check_weight_gradient(const Convolution& c, std::uint64_t seed) {
  const GuardedBuffer x = random_pixels(c.x, seed), dy = random_pixels(c.y, seed + 1);
  const std::vector<Sum> expected = reference_weight_gradient(c, x, dy);
  for_each_form([&](const WinogradForm& form, ProductMaker maker) {
    const KernelPointer kernel = require_kernel(prepare_winograd_weight_gradient(c, form, maker));
    const Tolerance tolerance(form, expected, static_cast<double>(c.y.positions()), ElementType::f32);
    EXPECT_EQ(0, count_outside(tolerance, expected, weight_gradient(c, *kernel, x, dy)))
        << kernel->info().name << ", seed " << seed << ": " << describe(c);
  });
}

TEST(WinogradBf16, agrees_with_the_oracle_whatever_the_shape) {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    Convolution c = random_problem(seed, ElementType::bf16, 2);
    if (seed % 3 == 0) c.y.type = ElementType::f32;
    check_pass(c, passes[0], seed);
    c.y.type = ElementType::bf16;
    if (seed % 3 == 1) c.x.type = ElementType::f32;
    check_pass(c, passes[1], seed);
    c.x.type = ElementType::bf16;
    check_weight_gradient(c, seed);
  }
}

// Many blocks of tiles, a block that ends within a row of tiles, samples cut among blocks, an odd number of
// columns in a block.
TEST(WinogradBf16, agrees_with_the_oracle_over_many_blocks) {
  constexpr ElementType type = ElementType::bf16;
  const Convolution problems[] = {
      {.x = dense_image(17, 18, 1, 24, type),
       .y = dense_image(17, 18, 1, 72, type),
       .window = {3, 3, 1, 1, 1, 1, 1, 1}},
      {.x = dense_image(6, 5, 67, 34, type), .y = dense_image(4, 3, 67, 16, type), .window = {3, 3}}};
  for (const Convolution& c : problems) {
    for (const Pass& pass : passes) check_pass(c, pass, 7);
    check_weight_gradient(c, 7);
  }
}

TEST(WinogradBf16, agrees_with_the_oracle_over_volumes) {
  const Image plane = dense_image(7, 5, 3, 18, ElementType::bf16);
  for (const Convolution& c : {over_volume(6, 3, 1, plane, 66), over_volume(5, 2, 0, plane, 16)})
    for (const Pass& pass : passes) check_pass(c, pass, 7);
}

Convolution same_size(std::int64_t side, std::int64_t batch, std::int64_t in, std::int64_t out,
                      ElementType result = ElementType::bf16) {
  return {.x = dense_image(side, side, batch, in, ElementType::bf16),
          .y = dense_image(side, side, batch, out, result),
          .window = {3, 3, 1, 1, 1, 1, 1, 1}};
}

// The root mean square of the error beside that of the result.
double noise(const std::vector<Sum>& expected, const std::vector<double>& actual) {
  double error = 0, all = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i].value) * (actual[i] - expected[i].value);
    all += expected[i].value * expected[i].value;
  }
  return std::sqrt(error / all);
}

// The share that the choice of tiles is based on, from both sides: products in bf16 leave as much as they
// should, and products in f32 nothing.
TEST(WinogradBf16, leaves_the_noise_that_was_expected) {
  const Convolution c = same_size(12, 2, 32, 16, ElementType::f32);
  const GuardedBuffer x = random_pixels(c.x, 1), w = random_weights(c, 2);
  Convolution gradient = c;
  gradient.y.type = ElementType::bf16;
  const GuardedBuffer dy = random_pixels(gradient.y, 3);
  const std::vector<Sum> y = reference_forward(c, x, w), dw = reference_weight_gradient(gradient, x, dy);
  for_each_form([&](const WinogradForm& form, ProductMaker maker) {
    const double forward =
        noise(y, run_pass(passes[0], c, *require_kernel(prepare_winograd_forward(c, form, maker)), x, w));
    const double backward = noise(
        dw, weight_gradient(gradient,
                            *require_kernel(prepare_winograd_weight_gradient(gradient, form, maker)), x, dy));
    const bool narrow = form.products == ElementType::bf16;
    const double expected = narrow ? winograd_bf16_noise(form.tile) : 0;
    EXPECT_NEAR(expected, forward, narrow ? 0.2 * expected : 1e-6) << "tiles of " << form.tile;
    EXPECT_NEAR(expected, backward, narrow ? 0.2 * expected : 1e-6) << "tiles of " << form.tile;
  });
  EXPECT_NEAR(0.0038, winograd_bf16_noise(2), 1e-4);
  EXPECT_NEAR(0.0060, winograd_bf16_noise(3), 1e-4);
  EXPECT_NEAR(0.0110, winograd_bf16_noise(4), 1e-4);
}

// The result is rounded once, behind the epilogue: the bits are those of the f32 result taken further by
// hand.
TEST(WinogradBf16, the_epilogue_follows_each_element_once) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 200; seed < 208; ++seed)
      for (const ElementType products : both_products) {
        const WinogradForm form{tiles[seed % 3], products};
        const ProductMaker maker = ProductMaker::portable;
        Convolution c = random_problem(seed, ElementType::bf16, 2), wide = c;
        wide.y.type = ElementType::f32;
        const GuardedBuffer x = random_pixels(c.x, seed), w = random_weights(c, seed + 1);
        const KernelPointer plain = require_kernel(prepare_winograd_forward(wide, form, maker));
        c.epilogue.bias().add(ElementType::bf16).activate(Activation::relu);
        const KernelPointer fused = require_kernel(prepare_winograd_forward(c, form, maker));
        const GuardedBuffer u = packed(c, w, *fused), added = random_pixels(c.y, seed + 2);
        GuardedBuffer bias(ElementType::f32, c.y.channels);
        bias.fill_random(seed + 3);
        GuardedBuffer y = random_pixels(wide.y, seed + 4), z = random_pixels(c.y, seed + 5);
        run_kernel(*plain, {x.data(), u.data()}, {y.data()});
        run_kernel(*fused, {x.data(), u.data(), bias.data(), added.data()}, {z.data()});
        int wrong = 0;
        for_each_element(c.y, [&](std::int64_t h, std::int64_t column, std::int64_t n, std::int64_t channel) {
          const std::int64_t at = address_of(c.y, h, column, n, channel);
          const float sum = static_cast<float>(y.get(at)) + static_cast<float>(bias.get(channel)) +
                            static_cast<float>(added.get(at));
          wrong += static_cast<float>(bf16(std::max(sum, 0.0f))) != static_cast<float>(z.get(at));
        });
        EXPECT_EQ(0, wrong) << fused->info().name << ", seed " << seed << ": " << describe(c);
      }
  });
}

// run_kernel runs in one piece and in parts by turns.
TEST(WinogradBf16, a_run_in_parts_gives_the_same_bits) {
  const AssumedCache cache(1 << 20);
  const Convolution c = same_size(14, 2, 96, 160);
  const GuardedBuffer x = random_pixels(c.x, 1), dy = random_pixels(c.y, 2), w = random_weights(c, 3);
  for (const std::int64_t tile : tiles) {
    const WinogradForm form{tile, ElementType::bf16};
    const KernelPointer kernel = require_kernel(prepare_winograd_forward(c, form, ProductMaker::portable));
    EXPECT_LT(4, kernel->info().parts);
    EXPECT_EQ(run_pass(passes[0], c, *kernel, x, w), run_pass(passes[0], c, *kernel, x, w));
    const KernelPointer gradient =
        require_kernel(prepare_winograd_weight_gradient(c, form, ProductMaker::portable));
    EXPECT_EQ(6, gradient->info().parts);
    EXPECT_EQ(weight_gradient(c, *gradient, x, dy), weight_gradient(c, *gradient, x, dy));
  }
}

TEST(WinogradBf16, the_test_would_notice_a_wrong_weight) {
  const Convolution c = same_size(9, 2, 16, 32);
  const GuardedBuffer x = random_pixels(c.x, 1), w = random_weights(c, 2);
  GuardedBuffer other = random_weights(c, 2), dy = random_pixels(c.y, 3);
  other.set(4, -other.get(4));
  const std::vector<Sum> expected = reference_forward(c, x, other);
  const std::vector<double> before = elements(c.y, dy);
  for_each_form([&](const WinogradForm& form, ProductMaker maker) {
    const KernelPointer kernel = require_kernel(prepare_winograd_forward(c, form, maker));
    EXPECT_LT(0, count_outside(Tolerance(form, expected, 9 * 16, ElementType::bf16), expected,
                               run_pass(passes[0], c, *kernel, x, w)));
  });
  std::vector<Sum> gradient = reference_weight_gradient(c, x, dy);
  dy.set(40, dy.get(40) + 4);
  for_each_form([&](const WinogradForm& form, ProductMaker maker) {
    const KernelPointer kernel = require_kernel(prepare_winograd_weight_gradient(c, form, maker));
    EXPECT_LT(0, count_outside(Tolerance(form, gradient, 162, ElementType::f32), gradient,
                               weight_gradient(c, *kernel, x, dy)));
  });
}

std::string chosen(const Prepared& kernel) {
  return kernel ? (*kernel)->info().name.substr(0, kernel.value()->info().name.find(" blocks"))
                : kernel.error().reason;
}

TEST(WinogradBf16, rounds_its_products_where_that_is_faster_and_exact_enough) {
  if (instruction_set() < InstructionSet::avx512_bf16) GTEST_SKIP() << "no products of bf16 pairs";
  const AssumedCache cache(1 << 20);
  const AssumedPairRate rate(PairRate::fast);
  using enum ConvolutionPass;
  EXPECT_LT(winograd_bf16_noise(largest_winograd_tile), winograd_noise_allowed);
  EXPECT_EQ("convolution, Winograd F(4x4, 3x3), 8",
            chosen(prepare_winograd<forward>(same_size(32, 4, 64, 64))));
  EXPECT_EQ("weight gradient, Winograd F(4x4, 3x3), 1 x 4",
            chosen(prepare_winograd<weight_gradient>(same_size(32, 4, 64, 64))));
  // Few channels: the direct sum, which is twice as fast in bf16.
  EXPECT_TRUE(chosen(prepare_winograd<forward>(same_size(32, 4, 16, 16))).starts_with("estimated at "));
}

TEST(WinogradBf16, without_products_of_pairs_multiplies_in_f32) {
  const auto before = instruction_set();
  if (before < InstructionSet::avx2) GTEST_SKIP() << "no vector instructions";
  set_instruction_set(InstructionSet::avx2);
  EXPECT_EQ("convolution, Winograd F(4x4, 3x3) in f32",
            chosen(prepare_winograd<ConvolutionPass::forward>(same_size(32, 4, 64, 64))).substr(0, 40));
  set_instruction_set(before);
}

TEST(WinogradBf16, where_pairs_are_slow_multiplies_in_f32) {
  if (instruction_set() < InstructionSet::avx512_bf16) GTEST_SKIP() << "no products of bf16 pairs";
  const AssumedPairRate rate(PairRate::slow);
  EXPECT_EQ("convolution, Winograd F(4x4, 3x3) in f32",
            chosen(prepare_winograd<ConvolutionPass::forward>(same_size(32, 4, 64, 64))).substr(0, 40));
}

TEST(WinogradBf16, refuses_what_it_cannot_do) {
  Convolution c = same_size(8, 1, 17, 16);
  EXPECT_EQ("winograd: products of pairs need an even number of channels",
            to_string(prepare_winograd_forward(c, {2, ElementType::bf16}, ProductMaker::portable).error()));
  c = same_size(8, 1, 16, 16, ElementType::f32);
  EXPECT_EQ(
      "winograd: products in bf16 of an image in f32",
      to_string(prepare_winograd_weight_gradient(c, {2, ElementType::bf16}, ProductMaker::portable).error()));
}

}  // namespace
}  // namespace superstep::kernels
