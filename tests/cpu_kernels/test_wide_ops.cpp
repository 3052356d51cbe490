#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/elementwise/wide_ops.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"

namespace superstep::kernels {
namespace {

std::int64_t draw(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

// What small whole numbers give; nothing for operations on bits of negative numbers.
std::optional<double> expected_of(WideOp op, double a, double b) {
  const auto i = static_cast<std::int64_t>(a), j = static_cast<std::int64_t>(b);
  switch (op) {
    case WideOp::negate: return -a;
    case WideOp::absolute: return std::abs(a);
    case WideOp::sign: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case WideOp::complement: return -a - 1;
    case WideOp::add: return a + b;
    case WideOp::subtract: return a - b;
    case WideOp::multiply: return a * b;
    case WideOp::divide: return b == 0 ? 0 : std::trunc(a / b);
    case WideOp::remainder: return b == 0 ? 0 : std::fmod(a, b) + 0.0;
    case WideOp::modulus: return b == 0 ? 0 : a - b * std::floor(a / b);
    case WideOp::least: return std::min(a, b);
    case WideOp::largest: return std::max(a, b);
    case WideOp::bits_and: return static_cast<double>(i & j);
    case WideOp::bits_or: return static_cast<double>(i | j);
    case WideOp::bits_xor: return static_cast<double>(i ^ j);
    case WideOp::equal: return a == b;
    case WideOp::less: return a < b;
    case WideOp::less_or_equal: return a <= b;
    default: return std::nullopt;
  }
}

bool compares(WideOp op) { return op >= WideOp::equal && op <= WideOp::less_or_equal; }

// The second operand is repeated along one axis or the other; the result may lie transposed.
void check(WideOp op, ElementType type, std::uint64_t seed) {
  RandomStream random(seed);
  const std::int64_t rows = draw(random, 0, 5), columns = draw(random, 1, 70);
  const bool two = op >= WideOp::add, transposed = seed % 3 == 0, along_rows = seed % 2 == 0;
  WideOperation o{.op = op, .type = type, .extents = {rows, columns}, .strides = {{columns, 1}}};
  if (two)
    o.strides.push_back(along_rows ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{1, 0});
  o.y_strides = transposed ? std::vector<std::int64_t>{1, std::max<std::int64_t>(rows, 1)}
                           : std::vector<std::int64_t>{columns, 1};
  GuardedBuffer a(type, rows * columns), b(type, std::max(rows, columns)),
      y(compares(op) ? ElementType::boolean : type, rows * columns);
  for (std::int64_t i = 0; i < a.size(); ++i) a.set(i, static_cast<double>(draw(random, -9, 9)));
  for (std::int64_t i = 0; i < b.size(); ++i) b.set(i, static_cast<double>(draw(random, -3, 3)));
  std::vector<const void*> inputs{a.data()};
  if (two) inputs.push_back(b.data());
  run_kernel(*require_kernel(prepare(o)), inputs, {y.data()});
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t row = i / columns, column = i % columns;
    const double other = b.get(along_rows ? column : row);
    double expected = *expected_of(op, a.get(i), other);
    if (type == ElementType::f64 && op == WideOp::divide) expected = a.get(i) / other;
    if (type == ElementType::f64 && other == 0 && op >= WideOp::divide && op <= WideOp::modulus) continue;
    EXPECT_EQ(y.get(transposed ? row + column * rows : i), expected)
        << name_of(op) << " of " << name_of(type) << ", " << a.get(i) << " and " << other;
  }
}

TEST(WideElements, AgreeWithNaiveLoops) {
  for (int i = 0; i <= static_cast<int>(WideOp::less_or_equal); ++i)
    for (const ElementType type : {ElementType::i64, ElementType::i32, ElementType::i8, ElementType::f64}) {
      const auto op = static_cast<WideOp>(i);
      const bool of_bits = op == WideOp::complement || (op >= WideOp::bits_and && op <= WideOp::bits_xor);
      if (!expected_of(op, 1, 1) || (of_bits && type == ElementType::f64)) continue;
      for (std::uint64_t seed = 0; seed < 6; ++seed) check(op, type, seed);
    }
}

template <class T>
T result_of(WideOp op, ElementType type, T a, T b) {
  T y{};
  const WideOperation o{.op = op, .type = type, .extents = {}, .strides = {{}, {}}, .y_strides = {}};
  run_kernel(*require_kernel(prepare(o)), {&a, &b}, {&y});
  return y;
}

TEST(WideElements, IntegersWrapAroundAndNothingIsUndefined) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max(),
                 least = std::numeric_limits<std::int64_t>::min();
  const auto of = [](WideOp op, std::int64_t a, std::int64_t b) {
    return result_of(op, ElementType::i64, a, b);
  };
  EXPECT_EQ(of(WideOp::add, most, 1), least);
  EXPECT_EQ(of(WideOp::multiply, least, -1), least);
  EXPECT_EQ(of(WideOp::divide, least, -1), least);
  EXPECT_EQ(of(WideOp::divide, 7, 0), 0);
  EXPECT_EQ(of(WideOp::modulus, least, -1), 0);
  EXPECT_EQ(of(WideOp::modulus, -7, 3), 2);
  EXPECT_EQ(of(WideOp::remainder, -7, 3), -1);
  EXPECT_EQ(of(WideOp::power, 3, 4), 81);
  EXPECT_EQ(of(WideOp::power, 2, -1), 0);
  EXPECT_EQ(of(WideOp::shift_left, 1, 62), std::int64_t{1} << 62);
  EXPECT_EQ(of(WideOp::shift_left, 1, 64), 0);
  EXPECT_EQ(of(WideOp::shift_right, -8, 70), -1);
  const std::uint16_t product = result_of<std::uint16_t>(WideOp::multiply, ElementType::u16, 65535, 65535);
  EXPECT_EQ(product, 1);
  EXPECT_TRUE(std::signbit(result_of(WideOp::modulus, ElementType::f64, 4.0, -2.0)));
}

TEST(WideElements, ConvertWithinTheRange) {
  const double from[] = {3e9, -3e9, std::nan(""), -2.9, 1e300};
  std::int32_t to[5] = {};
  WideOperation o{.op = WideOp::convert,
                  .type = ElementType::f64,
                  .result = ElementType::i32,
                  .extents = {5},
                  .strides = {{1}},
                  .y_strides = {1}};
  run_kernel(*require_kernel(prepare(o)), {from}, {to});
  const std::int32_t expected[] = {std::numeric_limits<std::int32_t>::max(),
                                   std::numeric_limits<std::int32_t>::min(), 0, -2,
                                   std::numeric_limits<std::int32_t>::max()};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(to[i], expected[i]) << i;
  std::int64_t wide[5] = {};
  o.result = ElementType::i64;
  run_kernel(*require_kernel(prepare(o)), {from}, {wide});
  EXPECT_EQ(wide[4], std::numeric_limits<std::int64_t>::max());
}

TEST(WideElements, SelectsElementsOfAnyType) {
  for (const ElementType type : {ElementType::u8, ElementType::bf16, ElementType::f32, ElementType::i64}) {
    GuardedBuffer condition(ElementType::boolean, 40), a(type, 40), b(type, 1), y(type, 40);
    for (std::int64_t i = 0; i < 40; ++i) condition.set(i, i % 3 == 0), a.set(i, static_cast<double>(i));
    b.set(0, 50);
    const WideOperation o{
        .op = WideOp::select, .type = type, .extents = {40}, .strides = {{1}, {1}, {0}}, .y_strides = {1}};
    run_kernel(*require_kernel(prepare(o)), {condition.data(), a.data(), b.data()}, {y.data()});
    for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(y.get(i), i % 3 == 0 ? static_cast<double>(i) : 50);
  }
}

TEST(WideElements, SaysWhatItDoesNotTake) {
  const WideOperation halves{
      .op = WideOp::add, .type = ElementType::bf16, .extents = {2}, .strides = {{1}, {1}}, .y_strides = {1}};
  EXPECT_EQ(prepare(halves).error().reason, "add of bf16");
  WideOperation one = halves;
  one.type = ElementType::i64;
  one.strides.pop_back();
  EXPECT_EQ(prepare(one).error().reason, "add takes 2 operands");
}

}  // namespace
}  // namespace superstep::kernels
