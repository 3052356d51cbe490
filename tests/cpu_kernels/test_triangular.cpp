// Cholesky factors and triangular systems against naive loops in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/product/triangular.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

constexpr std::int64_t orders[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 70};
constexpr ElementType types[] = {ElementType::f32, ElementType::f64};

double rounding(ElementType type) { return type == ElementType::f32 ? 0x1p-22 : 0x1p-50; }

GuardedBuffer stack(ElementType type, std::int64_t matrices, std::int64_t rows, std::int64_t columns) {
  return strided_buffer(type, {matrices, rows, columns}, {rows * columns, columns, 1});
}

// Positive definite, with other numbers above the diagonal, which nobody may use.
GuardedBuffer positive(ElementType type, std::int64_t matrices, std::int64_t n, std::uint64_t seed) {
  GuardedBuffer a = stack(type, matrices, n, n);
  a.fill_random(seed, -1, 1);
  for (std::int64_t k = 0; k < matrices; ++k)
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = k * n * n + i * n + i;
      a.set(at, 1 + static_cast<double>(n) + a.get(at));
      for (std::int64_t j = i + 1; j < n; ++j) a.set(k * n * n + i * n + j, NAN);
    }
  return a;
}

TEST(Triangular, FactorsGiveTheirMatrixBack) {
  for_each_instruction_set([] {
    for (ElementType type : types)
      for (std::int64_t n : orders) {
        const std::int64_t matrices = 1 + n % 3;
        GuardedBuffer a = positive(type, matrices, n, static_cast<std::uint64_t>(n)),
                      l = stack(type, matrices, n, n);
        run_kernel(*require_kernel(prepare(CholeskyFactor{matrices, n, type})), {a.data()}, {l.data()});
        const double allowed = rounding(type) * static_cast<double>(2 * n + 8);
        for (std::int64_t k = 0; k < matrices; ++k)
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              const std::int64_t first = k * n * n;
              if (j > i) {
                ASSERT_EQ(l.get(first + i * n + j), 0);
                continue;
              }
              double sum = 0;
              for (std::int64_t p = 0; p <= j; ++p)
                sum += l.get(first + i * n + p) * l.get(first + j * n + p);
              ASSERT_NEAR(sum, a.get(first + i * n + j), allowed * static_cast<double>(n))
                  << n << ": " << i << ", " << j;
            }
      }
  });
}

TEST(Triangular, AMatrixThatIsNotPositiveDefiniteGivesNaNAndLeavesTheOthers) {
  for (ElementType type : types)
    for (std::int64_t bad : {0, 3, 6}) {
      constexpr std::int64_t n = 7;
      GuardedBuffer a = positive(type, 2, n, 5), l = stack(type, 2, n, n);
      a.set(bad * n + bad, -1);
      run_kernel(*require_kernel(prepare(CholeskyFactor{2, n, type})), {a.data()}, {l.data()});
      for (std::int64_t i = 0; i < n * n; ++i) {
        EXPECT_TRUE(std::isnan(l.get(i)));
        EXPECT_TRUE(std::isfinite(l.get(n * n + i)));
      }
    }
}

TEST(Triangular, SystemsAreSolved) {
  for_each_instruction_set([] {
    for (ElementType type : types)
      for (std::int64_t n : orders)
        for (std::int64_t columns : {1, 3, 16, 70, 130})
          for (bool transposed : {false, true}) {
            const std::int64_t matrices = 1 + (n + columns) % 2;
            GuardedBuffer l = positive(type, matrices, n, static_cast<std::uint64_t>(n + 100 * columns));
            GuardedBuffer b = stack(type, matrices, n, columns), x = stack(type, matrices, n, columns);
            b.fill_random(static_cast<std::uint64_t>(columns), -1, 1);
            run_kernel(*require_kernel(prepare(TriangularSystem{matrices, n, columns, transposed, type})),
                       {l.data(), b.data()}, {x.data()});
            for (std::int64_t k = 0; k < matrices; ++k)
              for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t c = 0; c < columns; ++c) {
                  double sum = 0;
                  for (std::int64_t p = transposed ? i : 0; p < (transposed ? n : i + 1); ++p)
                    sum += l.get(k * n * n + (transposed ? p * n + i : i * n + p)) *
                           x.get((k * n + p) * columns + c);
                  ASSERT_NEAR(sum, b.get((k * n + i) * columns + c),
                              rounding(type) * static_cast<double>(4 * n + 8))
                      << n << " x " << columns << (transposed ? " transposed" : "");
                }
          }
  });
}

TEST(Triangular, OtherTypesAreRefusedByName) {
  const Prepared factor = prepare(CholeskyFactor{1, 3, ElementType::bf16});
  ASSERT_FALSE(factor);
  EXPECT_EQ(to_string(factor.error()), "Cholesky: no factors of bf16");
  EXPECT_FALSE(prepare(TriangularSystem{1, 3, 1, false, ElementType::i32}));
}

}  // namespace
}  // namespace superstep::kernels
