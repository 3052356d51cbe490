#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "superstep/base/element_type.h"
#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/numerics/definition.h"

namespace superstep::numerics {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Narrowed, is_the_conversion_of_f16_and_bf16_for_any_bits) {
  RandomStream random(1);
  int wrong = 0;
  for (int i = 0; i < 1000000; ++i) {
    const float value = from_bits(random.next_u32());
    if (std::isnan(value)) continue;
    wrong += narrowed(value, {.format = Format::f16}, 0) != static_cast<float>(f16(value));
    wrong += narrowed(value, {.format = Format::bf16}, 0) != static_cast<float>(bf16(value));
  }
  EXPECT_EQ(0, wrong);
}

TEST(Narrowed, keeps_every_f16_and_bf16_as_it_is) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    f16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    const float value = static_cast<float>(half);
    if (std::isnan(value)) continue;
    for (const Rounding rounding :
         {Rounding::nearest, Rounding::truncate, Rounding::nearest_away, Rounding::stochastic})
      ASSERT_EQ(value, narrowed(value, {.format = Format::f16, .rounding = rounding}, 0xffffffffu)) << bits;
  }
}

// Of the description of TF32: 8 bits of exponent, 10 of fraction; f32's lower 13 bits are rounded away.
TEST(Narrowed, gives_tf32_patterns) {
  const auto bits = [](float value, Rounding rounding) {
    return std::bit_cast<std::uint32_t>(narrowed(value, {.format = Format::tf32, .rounding = rounding}, 0));
  };
  EXPECT_EQ(0x3f800000u, bits(1.0f, Rounding::nearest));
  EXPECT_EQ(0x3dccc000u, bits(0.1f, Rounding::nearest));  // 0x3dcccccd
  EXPECT_EQ(0x40490000u, bits(3.14159274f, Rounding::nearest));
  EXPECT_EQ(0x3eaaa000u, bits(1.0f / 3, Rounding::nearest));
  EXPECT_EQ(0x3f802000u, bits(from_bits(0x3f801001u), Rounding::nearest));
  EXPECT_EQ(0x3f800000u, bits(from_bits(0x3f801000u), Rounding::nearest));       // a tie, to even
  EXPECT_EQ(0x3f802000u, bits(from_bits(0x3f801000u), Rounding::nearest_away));  // a tie, away
  EXPECT_EQ(0x3f800000u, bits(from_bits(0x3f801fffu), Rounding::truncate));
  EXPECT_EQ(0x7f800000u, bits(from_bits(0x7f7fffffu), Rounding::nearest));
  EXPECT_EQ(0x7f7fe000u, bits(from_bits(0x7f7fffffu), Rounding::truncate));
}

TEST(Narrowed, ends_where_formats_end) {
  EXPECT_EQ(infinity, narrowed(65520.0f, {.format = Format::f16}, 0));
  EXPECT_EQ(65504.0f, narrowed(65519.0f, {.format = Format::f16}, 0));
  EXPECT_EQ(65504.0f, narrowed(1e9f, {.format = Format::f16, .saturates = true}, 0));
  EXPECT_EQ(-57344.0f, narrowed(-infinity, {.format = Format::e5m2, .saturates = true}, 0));
  EXPECT_TRUE(std::isnan(narrowed(1000.0f, {.format = Format::e4m3}, 0)));  // no infinities
  EXPECT_EQ(448.0f, narrowed(1000.0f, {.format = Format::e4m3, .saturates = true}, 0));
  EXPECT_EQ(0x1p-9f, narrowed(0x1p-9f, {.format = Format::e4m3}, 0));
  EXPECT_EQ(0.0f, narrowed(0x1p-9f, {.format = Format::e4m3, .flushes = true}, 0));
  EXPECT_EQ(0x1p-24f, narrowed(0x1.8p-25f, {.format = Format::f16}, 0));
  EXPECT_EQ(0.0f, narrowed(0x1p-25f, {.format = Format::f16}, 0));
  EXPECT_TRUE(std::signbit(narrowed(-0x1p-30f, {.format = Format::f16}, 0)));
}

// By how many of all words a value is rounded up: its share of the unit, exactly.
TEST(Narrowed, rounds_up_by_the_share_that_is_cut_off) {
  const Narrowing to{.format = Format::bf16, .rounding = Rounding::stochastic};
  for (const std::uint32_t rest : {1u, 0x4000u, 0x8000u, 0xffffu}) {
    std::uint32_t up = 0;
    for (std::uint32_t word = 0; word < 0x10000; ++word)
      up += narrowed(from_bits(0x3f800000u + rest), to, word | word << 16) != 1.0f;
    EXPECT_EQ(rest, up);
  }
  const Narrowing half{.format = Format::f16, .rounding = Rounding::stochastic};
  std::uint32_t up = 0;
  for (std::uint32_t word = 0; word < 1u << 24; ++word) up += narrowed(0x1p-26f, half, word) != 0;
  EXPECT_EQ(1u << 22, up);  // a quarter of the unit 2^-24
}

TEST(Summed, is_fused_multiply_add_in_f32) {
  RandomStream random(7);
  const Arithmetic f32;
  int wrong = 0;
  for (int i = 0; i < 1000000; ++i) {
    const float a = from_bits(random.next_u32()), b = from_bits(random.next_u32()),
                c = from_bits(random.next_u32());
    const float expected = std::fma(a, b, c),
                found = summed(c, std::span(&a, 1), std::span(&b, 1), f32, 0, {});
    wrong += !(expected == found || (std::isnan(expected) && std::isnan(found)));
  }
  EXPECT_EQ(0, wrong);
}

TEST(Summed, cancels_as_fused_multiply_add_does) {
  RandomStream random(8);
  const Arithmetic f32;
  int wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    const auto a = static_cast<float>(random.uniform(-2, 2)), b = static_cast<float>(random.uniform(-2, 2));
    const float c = std::nextafter(-a * b, random.below(2) == 0 ? 10.0f : -10.0f);
    wrong += std::fma(a, b, c) != summed(c, std::span(&a, 1), std::span(&b, 1), f32, 0, {});
  }
  EXPECT_EQ(0, wrong);
}

// What was found of tensor cores: sums of a chunk are exact until they are cut off, and products that lie
// below the last place that is kept are lost, one by one.
TEST(Summed, aligns_as_tensor_cores_do) {
  Arithmetic v100 = *plain_arithmetic("f16");
  v100.order = Order::aligned, v100.chunk = 4, v100.extra_bits = 0;
  const float a[4] = {1, 0x1p-12f, 0x1p-12f, 0x1p-12f}, b[4] = {1, 0x1p-12f, 0x1p-12f, 0x1p-12f};
  EXPECT_EQ(1.0f, summed(0, a, b, v100, 0, {}));  // each of 2^-24 is lost
  Arithmetic a100 = v100;
  a100.extra_bits = 1;
  EXPECT_EQ(1.0f + 0x1p-23f, summed(0, a, b, a100, 0, {}));  // three of them are kept, and their sum cut off
  const float c[2] = {0x1p-12f, 0x1p-12f}, d[2] = {0x1p-11f, 0x1p-13f};
  EXPECT_EQ(-1.0f + 0x1p-23f, summed(-1.0f, c, d, v100, 0, {}));
}

TEST(Summed, adds_trees_of_pairs) {
  Arithmetic tree = *plain_arithmetic("bf16");
  tree.order = Order::tree, tree.chunk = 4;
  const float a[4] = {1, 0x1p-24f, 0x1p-24f, 0x1p-24f}, b[4] = {1, 1, 1, 1};
  EXPECT_EQ(1.0f + 0x1p-23f, summed(0, a, b, tree, 0, {}));  // (1 + e) + (e + e)
  tree.order = Order::in_turn;
  EXPECT_EQ(1.0f, summed(0, a, b, tree, 0, {}));
}

TEST(Summed, rounds_after_every_chunk) {
  Arithmetic ipu = *plain_arithmetic("16.16");
  std::vector<float> a(64, 1.0f), b(64, 0.25f);
  ipu.chunk = 1;
  EXPECT_EQ(1024.0f, summed(1024.0f, a, b, ipu, 0, {}));  // each quarter is lost
  ipu.chunk = 16;
  EXPECT_EQ(1040.0f, summed(1024.0f, a, b, ipu, 0, {}));
}

TEST(Arithmetic, is_set_by_names_and_refuses_others) {
  Arithmetic a;
  for (const Setting& setting : settings()) {
    set(a, setting.name, get(a, setting.name));
    EXPECT_THROW(set(a, setting.name, "nonsense"), Error) << setting.name;
  }
  EXPECT_THROW(set(a, "operand", "f16"), Error);
  set(a, "chunk", "48"), set(a, "order", "tree");
  EXPECT_THROW(check(a, "here"), Error);
  set(a, "chunk", "32");
  EXPECT_NO_THROW(check(a, "here"));
  set(a, "order", "aligned"), set(a, "chunk", "8");
  EXPECT_THROW(check(a, "here"), Error);  // of f32
  set(a, "operands", "tf32"), set(a, "extra_bits", "2");
  EXPECT_NO_THROW(check(a, "here"));
  set(a, "chunk", "16");
  EXPECT_THROW(check(a, "here"), Error);
}

}  // namespace
}  // namespace superstep::numerics
