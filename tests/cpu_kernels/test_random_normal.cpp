#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/elementwise/random_normal.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

// Number i, by the definition in op/elementwise/random.h.
double number(const RandomNormal& random, std::uint64_t counter, std::int64_t i) {
  RandomStream stream(random.seed, counter, random.stream);
  stream.seek(static_cast<std::uint64_t>(i - i % 2));
  const auto fraction = [&] { return (static_cast<double>(stream.next_u32() >> 9) + 0.5) * 0x1p-23; };
  const double u = fraction(), t = fraction();
  const double angle = 2 * std::numbers::pi * t;
  return std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

TEST(RandomNormal, is_made_of_the_words_of_its_stream) {
  for_each_instruction_set([] {
    for (const std::int64_t count : {1, 2, 7, 16, 63, 1000, 20011}) {
      const RandomNormal random{.seed = 0x123456789abcdefull, .stream = 7, .count = count};
      const std::int64_t counter = (std::int64_t{3} << 32) + 2;
      GuardedBuffer buffer(ElementType::f32, static_cast<std::size_t>(count));
      run_kernel(*require_kernel(prepare(random)), {&counter}, {buffer.data()});
      double worst = 0;
      for (std::int64_t i = 0; i < count; ++i)
        worst = std::max(worst, std::abs(buffer.get(static_cast<std::size_t>(i)) -
                                         number(random, static_cast<std::uint64_t>(counter), i)));
      EXPECT_LT(worst, 2e-6) << count;
    }
  });
}

TEST(RandomNormal, differs_by_counter_stream_and_seed) {
  const auto first = [](const RandomNormal& random, std::int64_t counter) {
    GuardedBuffer buffer(ElementType::f32, 4);
    run_kernel(*require_kernel(prepare(random)), {&counter}, {buffer.data()});
    return buffer.get(0);
  };
  const RandomNormal random{.seed = 1, .stream = 2, .count = 4};
  EXPECT_EQ(first(random, 5), first(random, 5));
  EXPECT_NE(first(random, 5), first(random, 6));
  EXPECT_NE(first(random, 5), first({.seed = 1, .stream = 3, .count = 4}, 5));
  EXPECT_NE(first(random, 5), first({.seed = 2, .stream = 2, .count = 4}, 5));
}

}  // namespace
}  // namespace superstep::kernels
