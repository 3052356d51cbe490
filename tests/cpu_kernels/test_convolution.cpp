#include <gtest/gtest.h>

#include <array>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "tests/cpu_kernels/support/assumed_cache.h"
#include "tests/cpu_kernels/support/assumed_pair_rate.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/convolution_reference.h"

namespace superstep::kernels {
namespace {

GuardedBuffer random_weights(const Convolution& c, std::uint64_t seed) {
  GuardedBuffer w(ElementType::f32, c.y.channels * (c.x.channels / c.groups) * c.window.taps());
  w.fill_random(seed);
  return w;
}

// Weights that packing as bf16 leaves as they are.
void round_to_bf16(GuardedBuffer& w) {
  for (std::int64_t i = 0; i < w.size(); ++i)
    w.set(i, static_cast<double>(static_cast<float>(bf16(w.as<float>()[i]))));
}

GuardedBuffer random_pixels(const Image& image, std::uint64_t seed) {
  GuardedBuffer buffer = image_buffer(image);
  buffer.fill_random(seed);
  return buffer;
}

GuardedBuffer packed(const Convolution& c, const GuardedBuffer& w, const KernelInfo& info,
                     ElementType source) {
  const WeightLayout layout = info.weights;
  const ElementType type = layout.own() ? info.arithmetic : source;
  const WeightTransfer transfer = weight_transfer(c, layout, WeightOrder::out_in_taps, type);
  GuardedBuffer buffer(type, static_cast<std::int64_t>(packed_elements(transfer)));
  run_kernel(*require_kernel(prepare_pack(transfer)), {w.data()}, {buffer.data()});
  return buffer;
}

std::vector<double> elements(const Image& image, const GuardedBuffer& buffer) {
  std::vector<double> values;
  for_each_element(image, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    values.push_back(buffer.get(address_of(image, h, w, n, c)));
  });
  return values;
}

double terms_of(const Convolution& c) {
  return static_cast<double>(c.x.channels / c.groups * c.window.taps());
}

// One pass with one implementation against the oracle.
enum class Pass { forward, input_gradient };

void check_pass(const Convolution& c, Pass pass, const std::string& implementation, std::uint64_t seed) {
  const bool forward = pass == Pass::forward;
  const auto& list = forward ? convolution_forward() : convolution_input_gradient();
  Prepared prepared = list.prepare(c, implementation);
  if (!prepared) return;  // what may refuse is tested apart
  const Image &source = forward ? c.x : c.y, &result = forward ? c.y : c.x;
  const GuardedBuffer s = random_pixels(source, seed);
  GuardedBuffer w = random_weights(c, seed + 1);
  if (source.type == ElementType::bf16) round_to_bf16(w);
  const GuardedBuffer w_packed = packed(c, w, (*prepared)->info(), source.type);
  GuardedBuffer r = random_pixels(result, seed + 2);
  std::vector<Sum> expected = forward ? reference_forward(c, s, w) : reference_input_gradient(c, s, w);
  if (c.accumulate) {
    const std::vector<double> before = elements(result, r);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i].add(before[i]);
  }
  run_kernel(**prepared, {s.data(), w_packed.data()}, {r.data()});
  const std::vector<double> actual = elements(result, r);
  EXPECT_EQ(0, count_wrong(expected, terms_of(c) * (forward ? 1 : static_cast<double>(c.y.channels)),
                           result.type, [&](std::size_t i) { return actual[i]; }))
      << (forward ? "forward, " : "input gradient, ") << implementation << ", seed " << seed << ": "
      << describe(c);
}

void check_weight_gradient(const Convolution& c, const std::string& implementation, std::uint64_t seed) {
  Prepared prepared = convolution_weight_gradient().prepare(c, implementation);
  if (!prepared) return;
  const GuardedBuffer x = random_pixels(c.x, seed), dy = random_pixels(c.y, seed + 1);
  const WeightTransfer transfer = weight_transfer(c, (*prepared)->info().weights);
  GuardedBuffer dw(ElementType::f32, static_cast<std::int64_t>(packed_elements(transfer)));
  GuardedBuffer unpacked(ElementType::f32, dw.size());
  run_kernel(**prepared, {x.data(), dy.data()}, {dw.data()});
  run_kernel(**prepared, {x.data(), dy.data()}, {dw.data()});  // accumulates
  run_kernel(*require_kernel(prepare_unpack(transfer)), {dw.data()}, {unpacked.data()});
  std::vector<Sum> expected = reference_weight_gradient(c, x, dy);
  for (Sum& sum : expected) sum = {2 * sum.value, 2 * sum.magnitude};
  const double terms = 2 * static_cast<double>(c.y.positions());
  EXPECT_EQ(0, count_wrong(expected, terms, ElementType::f32,
                           [&](std::size_t i) { return unpacked.get(static_cast<std::int64_t>(i)); }))
      << "weight gradient, " << implementation << ", seed " << seed << ": " << describe(c);
}

// All of a list but Winograd's, whose rounding is another one (test_winograd.cpp): a new one is tested by
// being in its list.
std::vector<const char*> direct_ones(const ImplementationList<Convolution>& list) {
  std::vector<const char*> names;
  for (const auto& implementation : list.all())
    if (implementation.name != std::string("winograd")) names.push_back(implementation.name);
  return names;
}

const std::vector<const char*> forward_implementations = direct_ones(convolution_forward()),
                               gradient_implementations = direct_ones(convolution_input_gradient()),
                               weight_implementations = direct_ones(convolution_weight_gradient());

TEST(Convolution, agrees_with_the_oracle_whatever_the_shape) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Convolution c = random_convolution(seed);
      c.accumulate = seed % 4 == 0;
      for (const char* implementation : forward_implementations)
        check_pass(c, Pass::forward, implementation, seed);
      for (const char* implementation : gradient_implementations)
        check_pass(c, Pass::input_gradient, implementation, seed);
      for (const char* implementation : weight_implementations)
        check_weight_gradient(c, implementation, seed);
    }
  });
}

TEST(Convolution, agrees_with_the_oracle_over_volumes) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 200; seed < 260; ++seed) {
      Convolution c = random_volume_convolution(seed);
      if (seed % 3 == 0) c.x.type = c.y.type = ElementType::bf16;
      c.accumulate = seed % 4 == 0 && c.y.type == ElementType::f32;
      for (const char* implementation : {"few outputs", "libxsmm", "portable"}) {
        check_pass(c, Pass::forward, implementation, seed);
        check_pass(c, Pass::input_gradient, implementation, seed);
      }
      for (const char* implementation : {"libxsmm", "portable"})
        check_weight_gradient(c, implementation, seed);
    }
  });
}

// Weights that fit the cache, tile by tile, and that do not: several tiles together, of every step and
// padding.
TEST(Convolution, of_bf16_in_f32_agrees_with_the_oracle_however_its_tiles_are_widened) {
  const AssumedPairRate rate(PairRate::slow);
  const InstructionSet widest = instruction_set();
  for (const std::int64_t cache_bytes : {std::int64_t{48} << 10, std::int64_t{4} << 20}) {
    const AssumedCache cache(cache_bytes);
    for (const InstructionSet set : available_instruction_sets()) {
      set_instruction_set(set);
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const auto n = static_cast<std::int64_t>(seed);
        const std::int64_t taps = 1 + 2 * (n % 2), stride = 1 + n / 2 % 2, groups = 1 + n / 4 % 2,
                           out = 5 + n % 3;
        Convolution c;
        c.window = {.height = taps,
                    .width = taps,
                    .stride_h = stride,
                    .stride_w = stride,
                    .pad_top = taps / 2,
                    .pad_left = taps / 2};
        c.groups = groups;
        c.y = dense_image(out, out + 2, 1 + n % 2, groups * (n % 3 == 0 ? 130 : 48), ElementType::bf16);
        c.x = dense_image(out * stride, (out + 2) * stride, c.y.batch, groups * (30 + n % 2),
                          ElementType::bf16);
        if (n % 5 == 0) c.x.type = c.y.type = ElementType::bf16, c.y.type = ElementType::f32;
        const auto kernel = convolution_forward().prepare(c, "libxsmm");
        ASSERT_EQ(kernel.has_value(), set >= InstructionSet::avx2);
        if (!kernel) continue;
        EXPECT_NE(std::string::npos, (*kernel)->info().name.find(", bf16 in f32")) << (*kernel)->info().name;
        EXPECT_EQ(ElementType::f32, (*kernel)->info().arithmetic);
        check_pass(c, Pass::forward, "libxsmm", seed);
        check_pass(c, Pass::input_gradient, "libxsmm", seed);
      }
    }
  }
  set_instruction_set(widest);
}

// Chunks of a weight gradient: whole small planes together, and rows of planes that are too large for that.
TEST(Convolution, weight_gradients_of_volumes_agree_with_the_oracle_however_their_planes_are_divided) {
  const AssumedCache cache(512 << 10);
  for (const auto& [planes, rows, width, channels] :
       {std::array<std::int64_t, 4>{15, 8, 5, 64}, std::array<std::int64_t, 4>{3, 40, 24, 32}})
    for (ElementType type : {ElementType::f32, ElementType::bf16}) {
      Convolution c;
      c.x = dense_image(planes * rows, width, 2, channels, type);
      c.x.planes = planes;
      c.y = c.x;
      c.window = {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1, .depth = 3, .pad_front = 1};
      const KernelPointer kernel = require_kernel(convolution_weight_gradient().prepare(c));
      EXPECT_NE(std::string::npos, kernel->info().name.find("chunks of")) << kernel->info().name;
      check_weight_gradient(c, "libxsmm", 2);
      check_weight_gradient(c, "portable", 2);
    }
}

// With one channel the taps of a row stand in for channels: windows that overlap at a stride above one read
// rows that begin before the last one ends.
TEST(Convolution, weight_gradients_of_one_channel_agree_with_the_oracle_where_strided_windows_overlap) {
  for_each_instruction_set([] {
    for (std::int64_t planes : {1, 3}) {
      Convolution c;
      c.x = dense_image(planes * 7, 5, 1, 1);
      c.x.planes = planes;
      c.y = dense_image(planes * 3, 2, 1, 2);
      c.y.planes = planes;
      c.window = {.height = 2, .width = 3, .stride_h = 2, .stride_w = 2};
      for (const char* implementation : {"libxsmm", "portable"}) check_weight_gradient(c, implementation, 2);
      EXPECT_TRUE(convolution_weight_gradient().prepare(c));
    }
  });
}

TEST(Convolution, kernels_of_single_planes_leave_volumes_to_others) {
  Convolution c;
  c.x = dense_image(12, 4, 1, 16);
  c.x.planes = 3;
  c.y = c.x;
  c.window = {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1};
  EXPECT_EQ("the window goes over volumes",
            convolution_weight_gradient().prepare(c, "winograd").error().reason);
  c.groups = 16;
  EXPECT_EQ("the window goes over volumes", convolution_forward().prepare(c, "depthwise").error().reason);
  c.x.planes = 5;
  EXPECT_EQ("the image's rows are no whole planes", fault_of(c));
}

TEST(Convolution, agrees_with_the_oracle_where_every_channel_is_alone) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Convolution c = random_depthwise_convolution(seed);
      c.accumulate = seed % 4 == 0;
      if (seed % 3 == 0) c.x.type = c.y.type = ElementType::bf16, c.accumulate = false;
      check_pass(c, Pass::forward, "depthwise", seed);
      check_pass(c, Pass::input_gradient, "depthwise", seed);
      check_weight_gradient(c, "depthwise", seed);
    }
  });
}

TEST(Convolution, agrees_with_the_oracle_in_bf16) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 100; seed < 140; ++seed) {
      Convolution c = random_convolution(seed);
      Convolution mixed = c;
      c.x.type = c.y.type = ElementType::bf16;
      for (const char* implementation : forward_implementations) {
        check_pass(c, Pass::forward, implementation, seed);
        mixed.x.type = ElementType::bf16, mixed.y.type = ElementType::f32;
        check_pass(mixed, Pass::forward, implementation, seed);
      }
      for (const char* implementation : gradient_implementations) {
        check_pass(c, Pass::input_gradient, implementation, seed);
        mixed.x.type = ElementType::f32, mixed.y.type = ElementType::bf16;
        check_pass(mixed, Pass::input_gradient, implementation, seed);
      }
      for (const char* implementation : weight_implementations)
        check_weight_gradient(c, implementation, seed);
    }
  });
}

// Depthwise convolutions of many channels: packed blocks where taps are many, the last block narrower.
Convolution wide_depthwise(std::uint64_t seed) {
  RandomStream random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  const std::int64_t channels = 33 + below(50), kernel = seed % 4 == 0 ? 3 : 5, stride = 1 + below(2);
  const std::int64_t pad = below(3);
  Convolution c;
  c.x = dense_image(5 + below(3), 5 + below(3), 1 + below(5), channels);
  c.window = {.height = kernel, .width = kernel, .stride_h = stride, .stride_w = stride};
  c.window.pad_top = c.window.pad_left = pad;
  c.groups = channels;
  const auto extent = [&](std::int64_t size) { return (size + 2 * pad - kernel) / stride + 1; };
  c.y = dense_image(extent(c.x.height), extent(c.x.width), c.x.batch, channels);
  return c;
}

bool is_packed(const Convolution& c) {
  const KernelPointer kernel = require_kernel(convolution_weight_gradient().prepare(c, "depthwise"));
  return kernel->info().name.find("packed") != std::string::npos;
}

TEST(Convolution, depthwise_ones_of_many_channels_agree_with_the_oracle) {
  for_each_instruction_set([] {
    int packed_ones = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Convolution c = wide_depthwise(seed);
      packed_ones += is_packed(c);
      for (const ElementType x : {ElementType::f32, ElementType::bf16})
        for (const ElementType y : {ElementType::f32, ElementType::bf16}) {
          c.x.type = x, c.y.type = y;
          if (x == ElementType::bf16 || y == ElementType::f32)
            check_pass(c, Pass::forward, "depthwise", seed);
          if (y == ElementType::bf16 || x == ElementType::f32)
            check_pass(c, Pass::input_gradient, "depthwise", seed);
          if (x == y) check_weight_gradient(c, "depthwise", seed);
        }
    }
    EXPECT_GT(packed_ones, 2);
    EXPECT_LT(packed_ones, 8);
  });
}

// Results that no tap of their window reaches, first or last in their image, and elements that no window
// reaches.
TEST(Convolution, depthwise_windows_beyond_the_image_give_nothing) {
  for_each_instruction_set([] {
    for (std::int64_t pad : {0, 5})
      for (std::int64_t stride : {1, 2}) {
        Convolution c;
        c.x = dense_image(2, 3, 2, 17);
        c.y = dense_image(7, 8, 2, 17);
        c.window = {.height = 3, .width = 3, .stride_h = stride, .stride_w = stride};
        c.window.pad_top = c.window.pad_left = pad;
        c.groups = 17;
        check_pass(c, Pass::forward, "depthwise", 1);
        check_weight_gradient(c, "depthwise", 1);
        c.x = dense_image(9, 8, 2, 17), c.y = dense_image(2, 2, 2, 17);
        check_pass(c, Pass::input_gradient, "depthwise", 1);
      }
  });
}

// Blocks that are asked for while the one before is used, and the gradient's rows with them.
TEST(Convolution, depthwise_gradients_of_packed_images_from_memory_agree_with_the_oracle) {
  Convolution c;
  c.x = dense_image(13, 14, 4, 370);
  c.y = dense_image(7, 7, 4, 370);
  c.window = {.height = 5, .width = 5, .stride_h = 2, .stride_w = 2, .pad_top = 2, .pad_left = 2};
  c.groups = 370;
  EXPECT_TRUE(is_packed(c));
  check_weight_gradient(c, "depthwise", 2);
}

// Images that come from memory: all channels of a column together.
TEST(Convolution, depthwise_ones_of_large_images_agree_with_the_oracle) {
  Convolution c;
  c.x = dense_image(61, 67, 4, 65);
  c.y = dense_image(31, 34, 4, 65);
  c.window = {.height = 3, .width = 3, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
  c.groups = 65;
  const KernelPointer kernel = require_kernel(convolution_forward().prepare(c, "depthwise"));
  EXPECT_NE(std::string::npos, kernel->info().name.find("tiles of 65 x")) << kernel->info().name;
  check_pass(c, Pass::forward, "depthwise", 1);
  check_pass(c, Pass::input_gradient, "depthwise", 1);
  check_weight_gradient(c, "depthwise", 1);
}

// The same of results that go to memory, behind a small source.
TEST(Convolution, depthwise_gradients_of_large_results_take_all_channels_together) {
  Convolution c;
  c.x = dense_image(64, 62, 4, 70);
  c.y = dense_image(32, 31, 4, 70);
  c.window = {.height = 3, .width = 3, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
  c.groups = 70;
  const KernelPointer kernel = require_kernel(convolution_input_gradient().prepare(c, "depthwise"));
  EXPECT_NE(std::string::npos, kernel->info().name.find("tiles of 70 x")) << kernel->info().name;
  check_pass(c, Pass::input_gradient, "depthwise", 3);
}

// Images whose rows are asked for ahead.
TEST(Convolution, depthwise_ones_of_images_from_memory_agree_with_the_oracle) {
  Convolution c;
  c.x = dense_image(150, 149, 4, 61);
  c.y = dense_image(50, 50, 4, 61);
  c.window = {.height = 2, .width = 3, .stride_h = 3, .stride_w = 3, .pad_left = 1};
  c.groups = 61;
  check_pass(c, Pass::input_gradient, "depthwise", 1);
  check_weight_gradient(c, "depthwise", 1);
}

// ---- the shapes each implementation is there for do take it

std::string taken(const ImplementationList<Convolution>& list, const Convolution& c) {
  for (const auto& implementation : list.all())
    if (implementation.prepare(c)) return implementation.name;
  return "none";
}

Convolution same_convolution(std::int64_t in, std::int64_t out, std::int64_t groups = 1) {
  Convolution c;
  c.x = dense_image(6, 6, 4, in);
  c.y = dense_image(6, 6, 4, out);
  c.window = {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1};
  c.groups = groups;
  return c;
}

TEST(Convolution, the_fastest_implementation_that_can_is_taken_and_the_others_say_why_not) {
  set_instruction_set(available_instruction_sets().back());
  if (instruction_set() == InstructionSet::scalar) GTEST_SKIP() << "no vector instructions";
  EXPECT_EQ("depthwise", taken(convolution_forward(), same_convolution(32, 32, 32)));
  EXPECT_EQ("few outputs", taken(convolution_forward(), same_convolution(64, 1)));
  EXPECT_EQ("winograd", taken(convolution_forward(), same_convolution(64, 32)));
  EXPECT_EQ("libxsmm", taken(convolution_forward(), same_convolution(64, 32, 2)));
  EXPECT_EQ("few outputs", taken(convolution_input_gradient(), same_convolution(3, 64)));
  EXPECT_EQ("few outputs", taken(convolution_forward(), dense_layer(1, 512, 10)));
  EXPECT_EQ("libxsmm", taken(convolution_forward(), dense_layer(5, 512, 10)));
  const Prepared kernel = convolution_forward().prepare(same_convolution(64, 32, 2));
  ASSERT_TRUE(kernel);
  ASSERT_EQ(3u, (*kernel)->info().refused.size());
  EXPECT_EQ("depthwise: the groups have more than one channel", to_string((*kernel)->info().refused[0]));
  EXPECT_EQ("few outputs: more than 8 outputs", to_string((*kernel)->info().refused[1]));
  EXPECT_EQ("winograd: the channels are in groups", to_string((*kernel)->info().refused[2]));
  set_instruction_set(InstructionSet::scalar);
  EXPECT_EQ("portable", taken(convolution_forward(), same_convolution(64, 32)));
  const Prepared refused = convolution_forward().prepare(same_convolution(64, 32), "libxsmm");
  EXPECT_EQ("generated code needs AVX2 or AVX-512", refused.error().reason);
  set_instruction_set(available_instruction_sets().back());
}

TEST(Convolution, counts_only_the_taps_inside_the_image) {
  // 3 x 3 over 6 x 6 with padding 1: 16 positions an axis are inside instead of 18.
  EXPECT_EQ(16.0 * 16 * 4 * 8 * 24, multiply_adds(same_convolution(8, 24)));
  Convolution c = same_convolution(8, 24, 4);
  EXPECT_EQ(16.0 * 16 * 4 * 2 * 24, multiply_adds(c));
  EXPECT_EQ(2 * multiply_adds(c), require_kernel(convolution_forward().prepare(c))->info().flops);
}

TEST(Convolution, the_test_would_notice_a_wrong_weight) {
  const Convolution c = same_convolution(16, 32);
  const GuardedBuffer x = random_pixels(c.x, 1);
  GuardedBuffer w = random_weights(c, 2);
  const KernelPointer kernel = require_kernel(convolution_forward().prepare(c));
  const GuardedBuffer w_packed = packed(c, w, kernel->info(), ElementType::f32);
  GuardedBuffer y(ElementType::f32, extent_of(c.y));
  run_kernel(*kernel, {x.data(), w_packed.data()}, {y.data()});
  w.set(100, w.get(100) * 1.001);
  const std::vector<double> actual = elements(c.y, y);
  EXPECT_LT(0, count_wrong(reference_forward(c, x, w), terms_of(c), ElementType::f32,
                           [&](std::size_t i) { return actual[i]; }));
}

TEST(Convolution, refuses_what_makes_no_sense) {
  Convolution c = same_convolution(16, 32, 3);
  EXPECT_EQ("the groups do not divide the channels", fault_of(c));
  EXPECT_EQ("portable: the groups do not divide the channels",
            to_string(convolution_forward().prepare(c, "portable").error()));
  c = same_convolution(16, 32);
  c.x.type = ElementType::i32;
  EXPECT_EQ("images must be f32 or bf16", fault_of(c));
  c = same_convolution(16, 32);
  c.x.column_stride = 8;
  EXPECT_EQ("the image's columns overlap", fault_of(c));
  c = same_convolution(16, 32);
  c.y.batch = 2;
  EXPECT_EQ("input and output differ in their micro-batch", fault_of(c));
  c = same_convolution(16, 32);
  c.window.stride_h = 0;
  EXPECT_EQ("a stride of the window is not positive", fault_of(c));
}

}  // namespace
}  // namespace superstep::kernels
