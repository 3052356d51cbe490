#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/rows/reduce.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

constexpr Reduction reductions[] = {Reduction::sum, Reduction::mean,           Reduction::max,
                                    Reduction::min, Reduction::sum_of_squares, Reduction::product};

double exact(Reduction kind, const std::vector<double>& values) {
  double sum = 0, product = 1, most = -INFINITY, least = INFINITY, squares = 0;
  for (double v : values)
    sum += v, product *= v, squares += v * v, most = std::max(most, v), least = std::min(least, v);
  switch (kind) {
    case Reduction::sum: return sum;
    case Reduction::mean: return sum / static_cast<double>(values.size());
    case Reduction::max: return most;
    case Reduction::min: return least;
    case Reduction::sum_of_squares: return squares;
    case Reduction::product: return product;
  }
  return 0;
}

TEST(Reduce, agrees_with_the_definition) {
  for_each_instruction_set([] {
    static constexpr std::int64_t extents[] = {1, 2, 15, 16, 33, 150, 300, 2100};
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      RandomStream random(seed);
      Reduce r;
      r.reduction = reductions[seed % 6];
      r.outer = 1 + static_cast<std::int64_t>(random.below(4));
      r.reduced = extents[random.below(8)];
      r.inner = random.below(2) ? 1 : extents[random.below(6)];
      if (r.reduction == Reduction::product) r.reduced = 1 + r.reduced % 9;
      if (random.below(2)) r.type = ElementType::bf16;
      r.reduced_stride = r.inner + static_cast<std::int64_t>(random.below(3));
      r.outer_stride = r.reduced * r.reduced_stride + static_cast<std::int64_t>(random.below(3));
      r.accumulate = seed % 4 == 0 && r.reduction != Reduction::mean;
      GuardedBuffer x =
          strided_buffer(r.type, {r.outer, r.reduced, r.inner}, {r.outer_stride, r.reduced_stride, 1});
      GuardedBuffer y(ElementType::f32, r.outer * r.inner);
      x.fill_random(seed), y.fill(0.25);
      run_kernel(*require_kernel(prepare(r)), {x.data()}, {y.data()});
      for (std::int64_t o = 0; o < r.outer; ++o)
        for (std::int64_t i = 0; i < r.inner; ++i) {
          std::vector<double> values;
          for (std::int64_t k = 0; k < r.reduced; ++k)
            values.push_back(x.get(o * r.outer_stride + k * r.reduced_stride + i));
          double expected = exact(r.reduction, values);
          if (r.accumulate) {
            const bool picks = r.reduction == Reduction::max || r.reduction == Reduction::min;
            expected = r.reduction == Reduction::product ? expected * 0.25
                       : picks                           ? exact(r.reduction, {expected, 0.25})
                                                         : expected + 0.25;
          }
          ASSERT_NEAR(expected, y.get(o * r.inner + i),
                      4e-7 * (4 + std::abs(expected) + std::sqrt(static_cast<double>(r.reduced))))
              << "seed " << seed;
        }
    }
  });
}

TEST(Reduce, in_f64_has_its_digits) {
  static constexpr std::int64_t extents[] = {0, 1, 2, 7, 8, 9, 33, 150, 2100};
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    RandomStream random(seed);
    Reduce r{.reduction = reductions[seed % 6], .type = ElementType::f64};
    r.outer = 1 + static_cast<std::int64_t>(random.below(4));
    r.reduced = extents[(seed % 6 < 2 ? 0 : 1) + random.below(8)];
    r.inner = random.below(2) ? 1 : extents[1 + random.below(6)];
    if (r.reduction == Reduction::product) r.reduced = 1 + r.reduced % 9;
    r.reduced_stride = r.inner + static_cast<std::int64_t>(random.below(3));
    r.outer_stride = r.reduced * r.reduced_stride + static_cast<std::int64_t>(random.below(3));
    GuardedBuffer x =
        strided_buffer(r.type, {r.outer, r.reduced, r.inner}, {r.outer_stride, r.reduced_stride, 1});
    GuardedBuffer y(ElementType::f64, r.outer * r.inner);
    x.fill_random(seed), y.fill(0.25);
    run_kernel(*require_kernel(prepare(r)), {x.data()}, {y.data()});
    for (std::int64_t o = 0; o < r.outer; ++o)
      for (std::int64_t i = 0; i < r.inner; ++i) {
        std::vector<double> values;
        for (std::int64_t k = 0; k < r.reduced; ++k)
          values.push_back(x.get(o * r.outer_stride + k * r.reduced_stride + i));
        const double expected = values.empty() ? 0 : exact(r.reduction, values);
        ASSERT_NEAR(expected, y.get(o * r.inner + i), 1e-14 * (4 + static_cast<double>(r.reduced)))
            << "seed " << seed;
      }
  }
  double x[] = {1, NAN, 3}, y = 0;
  for (Reduction kind : {Reduction::max, Reduction::min}) {
    const Reduce r{.reduction = kind, .reduced = 3, .type = ElementType::f64};
    run_kernel(*require_kernel(prepare(r)), {x}, {&y});
    EXPECT_TRUE(std::isnan(y));
  }
}

TEST(Reduce, a_nan_wins_the_maximum) {
  for_each_instruction_set([] {
    std::vector<float> x(40, 1.0f), y(1);
    x[21] = NAN;
    for (Reduction kind : {Reduction::max, Reduction::min}) {
      run_kernel(*require_kernel(prepare(Reduce{.reduction = kind, .reduced = 40})), {x.data()}, {y.data()});
      EXPECT_TRUE(std::isnan(y[0]));
    }
  });
}

TEST(Reduce, refuses_what_it_cannot_do) {
  EXPECT_EQ("a mean cannot be added to",
            prepare(Reduce{.reduction = Reduction::mean, .accumulate = true}).error().reason);
  EXPECT_EQ("no reduction of i8", prepare(Reduce{.type = ElementType::i8}).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
