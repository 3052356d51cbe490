// Products of whole numbers against naive loops: every type, zero points, any strides, sums that wrap around.
#include <gtest/gtest.h>

#include <limits>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/product/whole_product.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/random_strides.h"

namespace superstep::kernels {
namespace {

using ZeroPoint = WholeProduct::ZeroPoint;

struct Types {
  ElementType a, b, c;
};

constexpr Types types[] = {{ElementType::u8, ElementType::i8, ElementType::i32},
                           {ElementType::u8, ElementType::u8, ElementType::i32},
                           {ElementType::i8, ElementType::i8, ElementType::i32},
                           {ElementType::i8, ElementType::u8, ElementType::i32},
                           {ElementType::i32, ElementType::i32, ElementType::i32},
                           {ElementType::u32, ElementType::u32, ElementType::u32},
                           {ElementType::i64, ElementType::i64, ElementType::i64},
                           {ElementType::u64, ElementType::u64, ElementType::u64}};

MatrixStrides scattered(RandomStream& random, const Matmul& m, std::int64_t rows, std::int64_t columns) {
  std::int64_t size = 0;
  const auto strides = scattered_strides(random, {m.batch[0], m.batch[1], rows, columns}, size);
  return {.batch = {strides[0], strides[1]}, .row = strides[2], .column = strides[3]};
}

WholeProduct random_product(RandomStream& random, const Types& of) {
  WholeProduct product;
  Matmul& m = product.matmul;
  m.batch = {draw(random, 1, 3), draw(random, 1, 3)};
  m.rows = draw(random, 1, 150), m.columns = draw(random, 1, 70), m.inner = draw(random, 0, 40);
  m.a = scattered(random, m, m.rows, m.inner), m.b = scattered(random, m, m.inner, m.columns);
  const std::int64_t row = m.columns + draw(random, 0, 3);
  m.c = {.batch = {m.batch[1] * m.rows * row, m.rows * row}, .row = row, .column = 1};
  m.a.type = of.a, m.b.type = of.b, m.c.type = of.c;
  if (random.below(3) == 0) m.b.batch = {0, 0};
  if (size_in_bytes(of.a) > 1) return product;
  product.of_rows = static_cast<ZeroPoint>(random.below(3));
  product.of_columns = static_cast<ZeroPoint>(random.below(3));
  return product;
}

GuardedBuffer buffer_of(const MatrixStrides& m, const Matmul& all, std::int64_t rows, std::int64_t columns) {
  return strided_buffer(m.type, {all.batch[0], all.batch[1], rows, columns},
                        {m.batch[0], m.batch[1], m.row, m.column});
}

std::int64_t place(const MatrixStrides& m, std::int64_t b0, std::int64_t b1, std::int64_t i, std::int64_t j) {
  return b0 * m.batch[0] + b1 * m.batch[1] + i * m.row + j * m.column;
}

std::uint64_t bits_at(const GuardedBuffer& buffer, std::int64_t at) {
  const auto as = [&]<class T>(T) {
    return static_cast<std::uint64_t>(static_cast<const T*>(buffer.data())[at]);
  };
  switch (buffer.type()) {
    case ElementType::u8: return as(std::uint8_t());
    case ElementType::i8: return as(std::int8_t());
    case ElementType::i32: return as(std::int32_t());
    case ElementType::u32: return as(std::uint32_t());
    default: return as(std::uint64_t());
  }
}

void fill(GuardedBuffer& buffer, std::uint64_t seed) {
  switch (buffer.type()) {
    case ElementType::u8: return buffer.fill_random(seed, 0, 255.9);
    case ElementType::i8: return buffer.fill_random(seed, -128, 127.9);
    default: return buffer.fill_random(seed, buffer.type() == ElementType::u32 ? 0 : -2e9, 2e9);
  }
}

// Elements that differ from the sum of 64 bits, cut to those of the result.
int count_wrong(const WholeProduct& product, std::uint64_t seed) {
  const Matmul& m = product.matmul;
  GuardedBuffer a = buffer_of(m.a, m, m.rows, m.inner), b = buffer_of(m.b, m, m.inner, m.columns),
                c = buffer_of(m.c, m, m.rows, m.columns);
  const auto many = [](ZeroPoint points, std::int64_t each) { return points == ZeroPoint::each ? each : 1; };
  GuardedBuffer rows(m.a.type, many(product.of_rows, m.rows));
  GuardedBuffer columns(m.b.type, many(product.of_columns, m.columns));
  fill(a, seed), fill(b, seed + 1), fill(rows, seed + 2), fill(columns, seed + 3);
  std::vector<const void*> inputs{a.data(), b.data()};
  if (product.of_rows != ZeroPoint::none) inputs.push_back(rows.data());
  if (product.of_columns != ZeroPoint::none) inputs.push_back(columns.data());
  run_kernel(*require_kernel(prepare(product)), inputs, {c.data()});
  const auto zero = [](ZeroPoint points, const GuardedBuffer& of, std::int64_t i) -> std::uint64_t {
    return points == ZeroPoint::none ? 0 : bits_at(of, points == ZeroPoint::each ? i : 0);
  };
  const std::uint64_t mask =
      size_in_bytes(m.c.type) == 4 ? 0xffffffffu : std::numeric_limits<std::uint64_t>::max();
  int wrong = 0;
  for (std::int64_t b0 = 0; b0 < m.batch[0]; ++b0)
    for (std::int64_t b1 = 0; b1 < m.batch[1]; ++b1)
      for (std::int64_t i = 0; i < m.rows; ++i)
        for (std::int64_t j = 0; j < m.columns; ++j) {
          std::uint64_t sum = 0;
          for (std::int64_t k = 0; k < m.inner; ++k)
            sum += (bits_at(a, place(m.a, b0, b1, i, k)) - zero(product.of_rows, rows, i)) *
                   (bits_at(b, place(m.b, b0, b1, k, j)) - zero(product.of_columns, columns, j));
          wrong += ((sum ^ bits_at(c, place(m.c, b0, b1, i, j))) & mask) != 0;
        }
  return wrong;
}

TEST(WholeProduct, IsExactAndWrapsAround) {
  for_each_instruction_set([] {
    std::uint64_t seed = 1;
    for (const Types& of : types)
      for (int i = 0; i < 6; ++i, seed += 10) {
        RandomStream random(seed);
        EXPECT_EQ(0, count_wrong(random_product(random, of), seed)) << "seed " << seed;
      }
  });
}

TEST(WholeProduct, RefusesWhatItCannotDo) {
  RandomStream random(1);
  WholeProduct product = random_product(random, types[0]);
  product.matmul.c.type = ElementType::f32;
  EXPECT_EQ("bytes whose sums are not i32", prepare(product).error().reason);
  product = random_product(random, types[4]);
  product.matmul.b.type = ElementType::i64;
  EXPECT_EQ("operands of several types", prepare(product).error().reason);
  product.matmul.a.type = ElementType::f32;
  EXPECT_EQ("no whole numbers but f32", prepare(product).error().reason);
  product = random_product(random, types[4]);
  product.matmul.columns = 7, product.matmul.c.column = 2;
  EXPECT_EQ("the columns of the result do not lie side by side", prepare(product).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
