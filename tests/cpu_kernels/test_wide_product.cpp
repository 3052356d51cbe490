// Products of f64 against naive loops: digits beyond f32, any strides, in one piece and in parts.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/product/wide_product.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/random_strides.h"

namespace superstep::kernels {
namespace {

constexpr ElementType f64 = ElementType::f64;

// A matrix of each of batch[0] x batch[1], its four strides in any order and with gaps; where `unit` is
// given, that dimension of the matrix has a stride of one.
MatrixStrides random_matrix(RandomStream& random, const std::array<std::int64_t, 2>& batch, std::int64_t rows,
                            std::int64_t columns, bool contiguous) {
  MatrixStrides m{.type = f64};
  const bool by_columns = random.below(2) == 0;
  if (contiguous) {
    const std::int64_t gap = draw(random, 0, 3);
    (by_columns ? m.column : m.row) = 1;
    (by_columns ? m.row : m.column) = (by_columns ? columns : rows) + gap;
    const std::int64_t size = std::max(m.row * rows, m.column * columns);
    m.batch = {batch[1] * size, size};
    return m;
  }
  std::int64_t size = 0;
  const auto strides = scattered_strides(random, {batch[0], batch[1], rows, columns}, size);
  m.batch = {strides[0], strides[1]};
  m.row = strides[2], m.column = strides[3];
  return m;
}

GuardedBuffer buffer_of(const MatrixStrides& m, const std::array<std::int64_t, 2>& batch, std::int64_t rows,
                        std::int64_t columns) {
  return strided_buffer(f64, {batch[0], batch[1], rows, columns}, {m.batch[0], m.batch[1], m.row, m.column});
}

std::int64_t place(const MatrixStrides& m, std::int64_t b0, std::int64_t b1, std::int64_t i, std::int64_t j) {
  return b0 * m.batch[0] + b1 * m.batch[1] + i * m.row + j * m.column;
}

WideProduct random_product(RandomStream& random) {
  WideProduct product;
  Matmul& m = product.matmul;
  m.batch = {draw(random, 1, 3), draw(random, 1, 3)};
  m.rows = draw(random, 1, 150), m.columns = draw(random, 1, 40), m.inner = draw(random, 1, 60);
  m.a = random_matrix(random, m.batch, m.rows, m.inner, random.below(2) == 0);
  m.b = random_matrix(random, m.batch, m.inner, m.columns, random.below(2) == 0);
  m.c = random_matrix(random, m.batch, m.rows, m.columns, true);
  if (random.below(3) == 0) m.b.batch = {0, 0};
  product.bias = m.c.column == 1 && random.below(2) == 0;
  if (random.below(3) == 0) product.alpha = -0.7;
  return product;
}

// The largest error, in units of 2^-52 of the sum of magnitudes.
double worst_error(const WideProduct& product, std::uint64_t seed) {
  const Matmul& m = product.matmul;
  GuardedBuffer a = buffer_of(m.a, m.batch, m.rows, m.inner), b = buffer_of(m.b, m.batch, m.inner, m.columns),
                c = buffer_of(m.c, m.batch, m.rows, m.columns), bias(f64, m.columns);
  a.fill_random(seed, -1, 1), b.fill_random(seed + 1, -1, 1), bias.fill_random(seed + 2, -1, 1);
  std::vector<const void*> inputs{a.data(), b.data()};
  if (product.bias) inputs.push_back(bias.data());
  run_kernel(*require_kernel(prepare(product)), inputs, {c.data()});
  double worst = 0;
  for (std::int64_t b0 = 0; b0 < m.batch[0]; ++b0)
    for (std::int64_t b1 = 0; b1 < m.batch[1]; ++b1)
      for (std::int64_t i = 0; i < m.rows; ++i)
        for (std::int64_t j = 0; j < m.columns; ++j) {
          long double sum = 0, magnitude = 0;
          for (std::int64_t k = 0; k < m.inner; ++k) {
            const long double term = static_cast<long double>(a.get(place(m.a, b0, b1, i, k))) *
                                     static_cast<long double>(b.get(place(m.b, b0, b1, k, j)));
            sum += term, magnitude += std::abs(term);
          }
          const long double added = product.bias ? static_cast<long double>(bias.get(j)) : 0.0L;
          const long double expected = static_cast<long double>(product.alpha) * sum + added;
          const long double error =
              std::abs(static_cast<long double>(c.get(place(m.c, b0, b1, i, j))) - expected);
          worst = std::max(worst, static_cast<double>(error / (magnitude + std::abs(added) + 1e-300L)));
        }
  return worst * 0x1p52;
}

TEST(WideProduct, AgreesWithNaiveLoops) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      RandomStream random(seed);
      // Sixty roundings and those of alpha and bias; f32 would be off by 2^29 of these units.
      EXPECT_LT(worst_error(random_product(random), seed), 64) << "seed " << seed;
    }
  });
}

TEST(WideProduct, ManyRowsAreSharedByParts) {
  for_each_instruction_set([] {
    WideProduct product;
    product.matmul = {.rows = 1000, .columns = 33, .inner = 9};
    product.matmul.a = {.row = 9, .column = 1, .type = f64};
    product.matmul.b = {.row = 33, .column = 1, .type = f64};
    product.matmul.c = {.row = 33, .column = 1, .type = f64};
    EXPECT_GT(require_kernel(prepare(product))->info().parts, 4);
    EXPECT_LT(worst_error(product, 3), 64);
  });
}

TEST(WideProduct, RefusesWhatItDoesNotDo) {
  WideProduct product;
  product.matmul = {.rows = 4, .columns = 4, .inner = 4};
  EXPECT_EQ(prepare(product).error().reason, "an operand is of another type");
  for (MatrixStrides* each : {&product.matmul.a, &product.matmul.b, &product.matmul.c})
    *each = {.row = 8, .column = 2, .type = f64};
  EXPECT_EQ(prepare(product).error().reason, "the result has no contiguous dimension");
  product.matmul.c = {.row = 1, .column = 4, .type = f64};
  product.bias = true;
  EXPECT_EQ(prepare(product).error().reason, "a bias across the contiguous dimension");
  product.bias = false, product.matmul.accumulate = true;
  EXPECT_EQ(prepare(product).error().reason, "something more is asked of it than the product");
}

}  // namespace
}  // namespace superstep::kernels
