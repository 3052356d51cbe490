// A kernel at every place of some more axes: a product whose matrices lie anywhere, in one piece and in
// parts.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/target/cpu/kernels/core/repeated.h"
#include "superstep/target/cpu/kernels/product/matmul.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

constexpr std::int64_t rows = 3, columns = 5, inner = 4;

Matmul one_product() {
  Matmul m{.rows = rows, .columns = columns, .inner = inner, .a = {}, .b = {}, .c = {}, .epilogue = {}};
  m.a.row = inner, m.b.row = columns, m.c.row = columns;
  return m;
}

// c[p][q] = a[p] b[q]: each operand is walked by one of the axes, the result by both.
void check(std::int64_t p, std::int64_t q) {
  constexpr std::int64_t f32 = sizeof(float);
  GuardedBuffer a(ElementType::f32, p * rows * inner), b(ElementType::f32, q * inner * columns),
      c(ElementType::f32, p * q * rows * columns);
  a.fill_random(1), b.fill_random(2);
  const KernelPointer kernel = repeated(require_kernel(matmul().prepare(one_product())),
                                        {{p, {rows * inner * f32, 0}, {q * rows * columns * f32}},
                                         {q, {0, inner * columns * f32}, {rows * columns * f32}}});
  EXPECT_GE(kernel->info().parts, 1);
  for (int twice = 0; twice < 2; ++twice) {  // whole, then in parts, or the other way round
    c.fill(0);
    run_kernel(*kernel, {a.data(), b.data()}, {c.data()});
    int wrong = 0;
    for (std::int64_t place = 0; place < p * q; ++place)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < inner; ++k)
            sum += a.get((place / q * rows + i) * inner + k) * b.get((place % q * inner + k) * columns + j);
          wrong += std::abs(c.get((place * rows + i) * columns + j) - sum) > 1e-6;
        }
    EXPECT_EQ(0, wrong) << p << " x " << q;
  }
}

TEST(Repeated, RunsAtEveryPlace) {
  for_each_instruction_set([] { check(1, 1), check(2, 3), check(5, 7), check(11, 13); });
}

TEST(Repeated, NoPlaceIsNoRun) { check(0, 3); }

TEST(Repeated, WithoutAxesIsTheKernelItself) {
  KernelPointer kernel = require_kernel(matmul().prepare(one_product()));
  const Kernel* before = kernel.get();
  EXPECT_EQ(before, repeated(std::move(kernel), {}).get());
}

TEST(Repeated, CountsTheWorkOfAllPlaces) {
  const KernelPointer kernel = repeated(require_kernel(matmul().prepare(one_product())), {{6, {0, 0}, {60}}});
  EXPECT_EQ(6.0 * 2 * rows * columns * inner, kernel->info().flops);
}

}  // namespace
}  // namespace superstep::kernels
