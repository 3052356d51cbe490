#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "superstep/target/cpu/kernels/bytes/quantize.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

int count_wrong(const Quantize& q, std::int32_t expected_zero_point) {
  GuardedBuffer x(ElementType::f32, q.elements), y(ElementType::u8, q.elements);
  x.fill_random(3, -40, 90);  // some beyond the bytes on either side
  run_kernel(*require_kernel(prepare(q)), {x.data()}, {y.data()});
  int wrong = 0;
  for (std::int64_t i = 0; i < q.elements; ++i) {
    const float scaled = x.as<float>()[i] * (1 / q.scale);
    const double expected =
        std::clamp(std::nearbyint(static_cast<double>(scaled)) + expected_zero_point, 0.0, 255.0);
    wrong += y.get(i) != expected;
  }
  return wrong;
}

TEST(Quantize, rounds_shifts_and_limits) {
  for_each_instruction_set([] {
    for (const std::int64_t elements : {1, 15, 16, 77, 20000})
      EXPECT_EQ(0, count_wrong({.elements = elements, .scale = 0.25f, .zero_point = 31}, 31)) << elements;
  });
}

TEST(Quantize, the_test_would_notice_another_zero_point) {
  EXPECT_LT(50, count_wrong({.elements = 100, .scale = 0.5f, .zero_point = 80}, 81));
}

TEST(Quantize, limits_what_is_far_away) {
  for_each_instruction_set([] {
    GuardedBuffer x(ElementType::f32, 20), y(ElementType::u8, 20);
    x.fill(0);
    const float infinity = std::numeric_limits<float>::infinity();
    x.as<float>()[0] = infinity, x.as<float>()[1] = -infinity, x.as<float>()[2] = 1e30f;
    x.as<float>()[3] = -1e30f, x.as<float>()[4] = std::numeric_limits<float>::quiet_NaN();
    run_kernel(*require_kernel(prepare(Quantize{.elements = 20, .scale = 1, .zero_point = 7})), {x.data()},
               {y.data()});
    const double expected[] = {255, 0, 255, 0, 0};
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(expected[i], y.get(i)) << i;
    EXPECT_EQ(7, y.get(5));
  });
}

TEST(Quantize, leaves_the_gaps_between_rows_alone) {
  for_each_instruction_set([] {
    const Quantize q{
        .elements = 37, .rows = 300, .x_stride = 40, .y_stride = 53, .scale = 0.5f, .zero_point = 9};
    GuardedBuffer x(ElementType::f32, 299 * 40 + 37), y(ElementType::u8, 299 * 53 + 37);
    x.fill_random(7, -20, 90);
    y.fill(77);
    const auto kernel = require_kernel(prepare(q));
    const void* input = x.data();
    void* output = y.data();
    for (std::int64_t part = kernel->info().parts; part-- > 0;)
      kernel->run_part({{&input, 1}, {&output, 1}, nullptr}, part);
    int wrong = 0;
    for (std::int64_t row = 0; row < 300; ++row)
      for (std::int64_t i = 0; i < (row < 299 ? 53 : 37); ++i) {
        const double value = i < 37 ? x.get(row * 40 + i) * 2 : 0;
        const double expected = i < 37 ? std::clamp(std::nearbyint(value) + 9, 0.0, 255.0) : 77;
        wrong += y.get(row * 53 + i) != expected;
      }
    EXPECT_EQ(0, wrong);
  });
}

TEST(Quantize, refuses_what_is_no_scale) {
  EXPECT_EQ("the scale is not positive", prepare(Quantize{.scale = 0}).error().reason);
  EXPECT_EQ("the zero point is no byte", prepare(Quantize{.zero_point = 256}).error().reason);
  EXPECT_EQ("there are no elements", prepare(Quantize{.elements = 0}).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
