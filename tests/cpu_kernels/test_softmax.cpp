#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/rows/softmax.h"
#include "superstep/target/cpu/kernels/rows/softmax_columns.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

double at(const GuardedBuffer& b, std::int64_t row, std::int64_t stride, std::int64_t i) {
  return b.get(row * stride + i);
}

std::vector<double> exact_row(const Softmax& s, const GuardedBuffer& x, std::int64_t row) {
  double maximum = -1e300, sum = 0;
  for (std::int64_t i = 0; i < s.length; ++i) maximum = std::max(maximum, at(x, row, s.x_stride, i));
  for (std::int64_t i = 0; i < s.length; ++i)
    sum += std::exp(static_cast<double>(s.scale) * (at(x, row, s.x_stride, i) - maximum));
  std::vector<double> y;
  for (std::int64_t i = 0; i < s.length; ++i) {
    const double z = static_cast<double>(s.scale) * (at(x, row, s.x_stride, i) - maximum);
    y.push_back(s.logarithm ? z - std::log(sum) : std::exp(z) / sum);
  }
  return y;
}

Softmax random_softmax(std::uint64_t seed) {
  RandomStream random(seed);
  static constexpr std::int64_t lengths[] = {1, 2, 7, 16, 31, 81, 96, 300, 1000};
  Softmax s;
  s.rows = static_cast<std::int64_t>(random.below(20));
  s.length = lengths[random.below(std::size(lengths))];
  s.x_stride = s.length + static_cast<std::int64_t>(random.below(3));
  s.y_stride = s.length + static_cast<std::int64_t>(random.below(3));
  s.dy_stride = s.length + static_cast<std::int64_t>(random.below(3));
  s.scale = random.below(2) ? 1.0f : 0.125f;
  s.logarithm = random.below(2) == 0;
  for (ElementType* type : {&s.x_type, &s.y_type, &s.dy_type})
    if (random.below(4) == 0) *type = ElementType::bf16;
  return s;
}

GuardedBuffer rows_of(ElementType type, const Softmax& s, std::int64_t stride) {
  return strided_buffer(type, {s.rows, s.length}, {stride, 1});
}

TEST(Softmax, agrees_with_the_definition) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
      const Softmax s = random_softmax(seed);
      GuardedBuffer x = rows_of(s.x_type, s, s.x_stride), y = rows_of(s.y_type, s, s.y_stride);
      x.fill_random(seed, -20, 20);
      run_kernel(*require_kernel(prepare_softmax(s)), {x.data()}, {y.data()});
      const double rounding = s.y_type == ElementType::bf16 ? 0x1p-8 : 1e-6;
      for (std::int64_t row = 0; row < s.rows; ++row) {
        const std::vector<double> exact = exact_row(s, x, row);
        for (std::int64_t i = 0; i < s.length; ++i) {
          const double e = exact[static_cast<std::size_t>(i)];
          const double allowed = s.logarithm ? rounding * (8 + std::abs(e)) : 5 * rounding * e + 1e-37;
          ASSERT_NEAR(e, at(y, row, s.y_stride, i), allowed)
              << "seed " << seed << " row " << row << " element " << i;
        }
      }
    }
  });
}

TEST(Softmax, gradient_is_the_jacobian_times_dy) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
      const Softmax s = random_softmax(seed);
      GuardedBuffer y = rows_of(s.y_type, s, s.y_stride), dy = rows_of(s.dy_type, s, s.dy_stride);
      GuardedBuffer dx = rows_of(s.x_type, s, s.x_stride);
      y.fill_random(seed, s.logarithm ? -5 : 0, s.logarithm ? -1 : 1);
      dy.fill_random(seed + 1);
      run_kernel(*require_kernel(prepare_softmax_gradient(s)), {y.data(), dy.data()}, {dx.data()});
      for (std::int64_t row = 0; row < s.rows; ++row) {
        Sum sum;
        for (std::int64_t i = 0; i < s.length; ++i)
          sum.add((s.logarithm ? 1 : at(y, row, s.y_stride, i)) * at(dy, row, s.dy_stride, i));
        for (std::int64_t i = 0; i < s.length; ++i) {
          const double yi = at(y, row, s.y_stride, i), dyi = at(dy, row, s.dy_stride, i);
          const double exact = static_cast<double>(s.scale) *
                               (s.logarithm ? dyi - std::exp(yi) * sum.value : yi * (dyi - sum.value));
          const double rounding = s.x_type == ElementType::bf16 ? 0x1p-8 * std::abs(exact) : 0;
          ASSERT_NEAR(exact, at(dx, row, s.x_stride, i), 2e-6 * (1 + sum.magnitude) + rounding)
              << "seed " << seed;
        }
      }
    }
  });
}

TEST(Softmax, masked_elements_get_nothing_and_large_ones_do_not_overflow) {
  for_each_instruction_set([] {
    const float infinity = INFINITY;
    std::vector<float> x{-infinity, 1000, 999, -infinity}, y(4);
    Softmax s;
    s.length = 4;
    run_kernel(*require_kernel(prepare_softmax(s)), {x.data()}, {y.data()});
    EXPECT_EQ(0, y[0]);
    EXPECT_EQ(0, y[3]);
    EXPECT_NEAR(1 / (1 + std::exp(-1)), y[1], 1e-6);
    run_kernel(*require_kernel(prepare_softmax(s)), {x.data()}, {x.data()});  // in place
    EXPECT_EQ(y, x);
  });
}

TEST(Softmax, refuses_what_it_cannot_do) {
  Softmax s;
  EXPECT_TRUE(prepare_softmax(s));
  s.length = 4, s.x_stride = 3;
  EXPECT_EQ("rows overlap", prepare_softmax(s).error().reason);
  s.x_stride = 4, s.scale = -1;
  EXPECT_EQ("the scale is not positive", prepare_softmax(s).error().reason);
  s.scale = 1, s.x_type = ElementType::i32;
  EXPECT_EQ("no softmax of i32", prepare_softmax_gradient(s).error().reason);
}

// The same down columns: one of few or many, of gaps between rows, in every type.
TEST(SoftmaxColumns, AgreeWithTheDefinition) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      RandomStream random(seed, 5);
      static constexpr std::int64_t lengths[] = {1, 2, 21, 150}, widths[] = {2, 15, 16, 64, 65, 131, 200};
      SoftmaxColumns s{.columns = widths[random.below(std::size(widths))],
                       .length = lengths[random.below(std::size(lengths))]};
      s.x_step = s.columns + static_cast<std::int64_t>(random.below(3));
      s.y_step = s.columns + static_cast<std::int64_t>(random.below(3));
      s.logarithm = random.below(2) == 0;
      for (ElementType* type : {&s.x_type, &s.y_type})
        if (random.below(3) == 0) *type = ElementType::bf16;
      GuardedBuffer x = strided_buffer(s.x_type, {s.length, s.columns}, {s.x_step, 1});
      GuardedBuffer y = strided_buffer(s.y_type, {s.length, s.columns}, {s.y_step, 1});
      x.fill_random(seed, -20, 20);
      run_kernel(*require_kernel(prepare(s)), {x.data()}, {y.data()});
      const double rounding = s.y_type == ElementType::bf16 ? 0x1p-8 : 1e-6;
      for (std::int64_t c = 0; c < s.columns; ++c) {
        double maximum = -1e300, sum = 0;
        for (std::int64_t i = 0; i < s.length; ++i) maximum = std::max(maximum, x.get(i * s.x_step + c));
        for (std::int64_t i = 0; i < s.length; ++i) sum += std::exp(x.get(i * s.x_step + c) - maximum);
        for (std::int64_t i = 0; i < s.length; ++i) {
          const double z = x.get(i * s.x_step + c) - maximum;
          const double e = s.logarithm ? z - std::log(sum) : std::exp(z) / sum;
          const double allowed = s.logarithm ? rounding * (8 + std::abs(e)) : 5 * rounding * e + 1e-37;
          ASSERT_NEAR(e, y.get(i * s.y_step + c), allowed) << "seed " << seed << " column " << c;
        }
      }
    }
  });
}

TEST(SoftmaxColumns, InPlaceAndWithWhatIsNoNumber) {
  for_each_instruction_set([] {
    SoftmaxColumns s{.columns = 20, .length = 3, .x_step = 20, .y_step = 20};
    GuardedBuffer x(ElementType::f32, 60);
    x.fill(1);
    for (std::int64_t i = 0; i < 3; ++i) x.set(i * 20 + 4, -INFINITY);
    x.set(20 + 17, NAN);
    run_kernel(*require_kernel(prepare(s)), {x.data()}, {x.data()});
    for (std::int64_t i = 0; i < 60; ++i) {
      if (i % 20 == 4 || i % 20 == 17)
        EXPECT_TRUE(std::isnan(x.get(i))) << i;
      else
        EXPECT_NEAR(1.0 / 3, x.get(i), 1e-7) << i;
    }
  });
}

}  // namespace
}  // namespace superstep::kernels
