#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/numerics/definition.h"
#include "superstep/target/cpu/kernels/numerics/narrowing_loops.h"
#include "superstep/target/cpu/kernels/numerics/panel_loops.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

using numerics::Arithmetic;
using numerics::Format;
using numerics::Narrowing;
using numerics::Order;
using numerics::Rounding;

constexpr Format formats[] = {Format::f32, Format::tf32, Format::bf16,
                              Format::f16, Format::e5m2, Format::e4m3};
constexpr Rounding roundings[] = {Rounding::nearest, Rounding::nearest_away, Rounding::truncate,
                                  Rounding::stochastic};

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Values of every exponent; those at, beside and between the numbers of short formats, more often than
// chance.
float hard_value(RandomStream& random) {
  std::uint32_t bits = random.next_u32();
  if (random.below(2) == 0)
    bits = (bits & 0x807fffffu) | static_cast<std::uint32_t>(100 + random.below(45)) << 23;
  static constexpr std::uint32_t ends[] = {0,      1,      0xfff,  0x1000,  0x1001,
                                           0x1fff, 0x8000, 0xffff, 0xfffff, 0x100000};
  if (random.below(4) == 0) bits = (bits & 0xffe00000u) | ends[random.below(std::size(ends))];
  if (random.below(64) == 0) bits &= 0x807fffffu;  // subnormal, or zero
  if (random.below(256) == 0) bits |= 0x7f800000u;
  return std::bit_cast<float>(bits);
}

std::uint32_t word_of(std::int64_t element, std::uint32_t node, std::uint64_t key) {
  return numerics::word_of({.column = static_cast<std::uint32_t>(element),
                            .row = numerics::element_row,
                            .step = static_cast<std::uint32_t>(element >> 32),
                            .node = node,
                            .key = key});
}

int wrong_of(const Narrowing& how, std::uint64_t seed, std::int64_t n) {
  RandomStream random(seed);
  std::vector<float> from(static_cast<std::size_t>(n));
  for (float& value : from) value = hard_value(random);
  GuardedBuffer to(ElementType::f32, n);
  const std::int64_t first = (std::int64_t{3} << 32) + 160;
  narrowing_loop()({.from = from.data(),
                    .to = static_cast<float*>(to.data()),
                    .n = n,
                    .how = how,
                    .first = first,
                    .node = 9,
                    .key = 77});
  int wrong = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = from[static_cast<std::size_t>(i)], found = static_cast<const float*>(to.data())[i];
    const bool draws = how.rounding == Rounding::stochastic;
    const float expected = numerics::narrowed(value, how, draws ? word_of(first + i, 9, 77) : 0);
    if (same(expected, found)) continue;
    if (wrong++ == 0)
      std::printf("%s %s: %a gives %a, expected %a\n", numerics::name_of(how.format),
                  numerics::name_of(how.rounding), static_cast<double>(value), static_cast<double>(found),
                  static_cast<double>(expected));
  }
  return wrong;
}

TEST(Narrowing, is_its_definition_for_every_format_and_rounding) {
  for_each_instruction_set([] {
    for (const Format format : formats)
      for (const Rounding rounding : roundings)
        for (const bool flushes : {false, true})
          for (const bool saturates : {false, true}) {
            const Narrowing how{
                .format = format, .rounding = rounding, .flushes = flushes, .saturates = saturates};
            const bool draws = rounding == Rounding::stochastic;  // whose definition is slow
            EXPECT_EQ(0, wrong_of(how, 5, draws ? 3001 : 20011));
          }
  });
}

TEST(Narrowing, is_its_definition_in_a_million_cases) {
  for (const Format format : {Format::f16, Format::tf32, Format::bf16, Format::e4m3})
    EXPECT_EQ(0, wrong_of({.format = format, .rounding = Rounding::nearest_away}, 6, 1000000));
}

// The mean of many roundings of one value is the value.
TEST(Narrowing, is_unbiased_where_it_is_stochastic) {
  constexpr std::int64_t at_a_time = 1 << 20, times = 64;
  std::vector<float> from(at_a_time), to(at_a_time);
  for (const auto& [value, unit] : {std::pair(1.0f + 0x1p-12f, 0x1p-10f), std::pair(0x1.4p-24f, 0x1p-24f),
                                    std::pair(-(3.0f + 0x1.1p-10f), 0x1p-9f)}) {
    std::fill(from.begin(), from.end(), value);
    double sum = 0;
    for (std::int64_t i = 0; i < times; ++i) {
      narrowing_loop()({.from = from.data(),
                        .to = to.data(),
                        .n = at_a_time,
                        .how = {.format = Format::f16, .rounding = Rounding::stochastic},
                        .first = i * at_a_time,
                        .node = 3,
                        .key = 11});
      for (const float rounded : to) sum += static_cast<double>(rounded) - static_cast<double>(value);
    }
    EXPECT_LT(std::abs(sum / static_cast<double>(at_a_time * times)), 1e-4 * static_cast<double>(unit))
        << value;
  }
}

struct Problem {
  std::int64_t rows, columns, k;
  int spread;  // of exponents
};

// A panel and its definition, element by element.
int wrong_sums(const Arithmetic& arithmetic, const Problem& p, std::uint64_t seed) {
  RandomStream random(seed);
  const auto operand = [&](std::int64_t n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) {
      const double exponent =
          p.spread > 0 ? static_cast<double>(random.below(static_cast<std::uint64_t>(p.spread))) : 0;
      const auto drawn = static_cast<float>(std::ldexp(random.uniform(-1, 1), static_cast<int>(-exponent)));
      value =
          random.below(16) == 0 ? 0.0f : numerics::narrowed(drawn, {.format = arithmetic.operands.format}, 0);
    }
    return values;
  };
  const std::vector<float> a = operand(p.rows * p.k), b = operand(p.k * p.columns);
  std::vector<float> sums(static_cast<std::size_t>(p.rows * p.columns));
  for (float& sum : sums)
    sum =
        numerics::narrowed(static_cast<float>(random.uniform(-1, 1)), {.format = arithmetic.sums.format}, 0);
  GuardedBuffer found(ElementType::f32, p.rows * p.columns);
  std::copy(sums.begin(), sums.end(), static_cast<float*>(found.data()));
  const std::int64_t first = 3 * arithmetic.chunk;
  panel_loop()({.a = a.data(),
                .b = b.data(),
                .sums = static_cast<float*>(found.data()),
                .a_pitch = p.k,
                .b_pitch = p.columns,
                .sums_pitch = p.columns,
                .rows = p.rows,
                .columns = p.columns,
                .k = p.k,
                .first = first,
                .row = 5,
                .column = 32,
                .node = 4,
                .key = 99,
                .arithmetic = &arithmetic});
  int wrong = 0;
  for (std::int64_t i = 0; i < p.rows; ++i)
    for (std::int64_t j = 0; j < p.columns; ++j) {
      std::vector<float> line, column;
      for (std::int64_t k = 0; k < p.k; ++k) {
        line.push_back(a[static_cast<std::size_t>(i * p.k + k)]);
        column.push_back(b[static_cast<std::size_t>(k * p.columns + j)]);
      }
      const float expected =
          numerics::summed(sums[static_cast<std::size_t>(i * p.columns + j)], line, column, arithmetic, first,
                           {.column = 32 + static_cast<std::uint32_t>(j),
                            .row = 5 + static_cast<std::uint32_t>(i),
                            .step = 0,
                            .node = 4,
                            .key = 99});
      const float got = static_cast<const float*>(found.data())[i * p.columns + j];
      if (!same(expected, got) && wrong++ == 0)
        std::printf("%s: (%ld, %ld) is %a, expected %a\n", to_string(arithmetic).c_str(),
                    static_cast<long>(i), static_cast<long>(j), static_cast<double>(got),
                    static_cast<double>(expected));
    }
  return wrong;
}

Arithmetic arithmetic_of(Format operands, Narrowing sums, Order order, int chunk, int extra_bits = 0) {
  Arithmetic a;
  a.operands.format = operands, a.sums = sums, a.order = order, a.chunk = chunk, a.extra_bits = extra_bits;
  numerics::check(a, "test");
  return a;
}

// Every type of sums, way of rounding and order; spreads up to where products fall below each other.
std::vector<Arithmetic> every_arithmetic() {
  std::vector<Arithmetic> all;
  for (const Format operands : {Format::f32, Format::tf32, Format::bf16, Format::f16, Format::e4m3})
    for (const Order order : {Order::in_turn, Order::tree})
      for (const Format sums : {Format::f32, Format::bf16, Format::f16})
        for (const Rounding rounding : roundings)
          for (const int chunk : {1, 4, 16})
            all.push_back(arithmetic_of(operands, {.format = sums, .rounding = rounding}, order, chunk));
  for (const Format operands : {Format::tf32, Format::bf16, Format::f16})
    for (const auto& [chunk, extra] : {std::pair(4, 0), std::pair(8, 1), std::pair(16, 1), std::pair(8, 2)})
      all.push_back(arithmetic_of(operands, {}, Order::aligned, chunk, extra));
  return all;
}

TEST(Panel, is_its_definition_for_every_arithmetic) {
  for_each_instruction_set([] {
    for (const Arithmetic& arithmetic : every_arithmetic())
      for (const int spread : {0, 12, 40}) EXPECT_EQ(0, wrong_sums(arithmetic, {5, 48, 37, spread}, 3));
  });
}

// A million sums, most of them at the arithmetic of machines.
TEST(Panel, is_its_definition_in_a_million_sums) {
  const Arithmetic ipu = arithmetic_of(Format::f16, {.format = Format::f16}, Order::in_turn, 16);
  const Arithmetic a100 = arithmetic_of(Format::tf32, {}, Order::aligned, 4, 1);
  const Arithmetic v100 = arithmetic_of(Format::f16, {}, Order::aligned, 4, 0);
  for (const Arithmetic& arithmetic : {ipu, a100, v100})
    for (std::uint64_t seed = 0; seed < 8; ++seed)
      EXPECT_EQ(0, wrong_sums(arithmetic, {130, 336, 9, static_cast<int>(seed) * 5}, seed));
}

// Products beyond what f32 holds on the way, and what is not finite.
TEST(Panel, aligns_numbers_of_any_size) {
  const Arithmetic a100 = arithmetic_of(Format::bf16, {}, Order::aligned, 4, 1);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for_each_instruction_set([&] {
    for (const float a : {0x1p100f, 0x1p-100f, 0x1p-130f, infinity, 0.0f})
      for (const float b : {0x1p100f, -0x1p27f, 0x1p-20f, 0x1p-60f, 0.0f}) {
        const std::vector<float> line{a, 1.0f, 0x1p-30f}, column{b, -0x1p20f, 0x1p-30f};
        std::vector<float> panel(48, 0.0f), sums(16, 0.5f);
        for (std::size_t k = 0; k < 3; ++k) panel[k * 16] = column[k];
        panel_loop()({.a = line.data(),
                      .b = panel.data(),
                      .sums = sums.data(),
                      .a_pitch = 3,
                      .b_pitch = 16,
                      .sums_pitch = 16,
                      .rows = 1,
                      .columns = 16,
                      .k = 3,
                      .first = 0,
                      .row = 0,
                      .column = 0,
                      .node = 0,
                      .key = 0,
                      .arithmetic = &a100});
        EXPECT_TRUE(same(numerics::summed(0.5f, line, column, a100, 0, {}), sums[0])) << a << " " << b;
      }
  });
}

}  // namespace
}  // namespace superstep::kernels
