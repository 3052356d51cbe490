#include <fmt/format.h>
#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

PairPanel random_panel(std::uint64_t seed) {
  RandomStream random(seed);
  static constexpr std::int64_t extents[] = {1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 64, 81, 130};
  PairPanel p;
  p.depth = extents[random.below(std::size(extents))];
  p.width = extents[random.below(std::size(extents))];
  p.type = random.below(2) == 0 ? ElementType::f32 : ElementType::bf16;
  p.order = random.below(2) == 0 ? PairPanel::Order::panels : PairPanel::Order::columns;
  const auto gap = static_cast<std::int64_t>(random.below(4));
  const std::int64_t unit = random.below(5) == 0 ? 3 : 1;  // now and then neither stride is 1
  if (random.below(2) == 0) {
    p.width_stride = unit, p.depth_stride = unit * p.width + gap;
  } else {
    p.depth_stride = unit, p.width_stride = unit * p.depth + gap;
  }
  return p;
}

// Where element (d, w) lies in the result.
std::int64_t place(const PairPanel& p, std::int64_t d, std::int64_t w) {
  if (p.order == PairPanel::Order::panels) return (d / 2 * p.width + w) * 2 + d % 2;
  return w * padded_depth(p.depth) + d;
}

// Elements that are not the source's, rounded, or zero in the padding.
int count_wrong(const PairPanel& p, std::uint64_t seed, std::int64_t shift = 0) {
  GuardedBuffer source = strided_buffer(p.type, {p.depth, p.width}, {p.depth_stride, p.width_stride});
  GuardedBuffer result(ElementType::bf16, padded_depth(p.depth) * p.width);
  source.fill_random(seed, -100, 100);
  result.fill(7);
  run_kernel(*require_kernel(prepare(p)), {source.data()}, {result.data()});
  int wrong = 0;
  for (std::int64_t d = 0; d < padded_depth(p.depth); ++d)
    for (std::int64_t w = 0; w < p.width; ++w) {
      const double expected =
          d < p.depth ? source.get(d * p.depth_stride + (w + shift) % p.width * p.width_stride) : 0;
      const bf16 rounded(static_cast<float>(expected));
      wrong += result.get(place(p, d, w)) != static_cast<double>(static_cast<float>(rounded));
    }
  return wrong;
}

TEST(PairPanel, has_every_element_in_its_place) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const PairPanel p = random_panel(seed);
      EXPECT_EQ(0, count_wrong(p, seed))
          << fmt::format("seed {}: {} x {}, strides {} {}, {}, order {}", seed, p.depth, p.width,
                         p.depth_stride, p.width_stride, name_of(p.type), static_cast<int>(p.order));
    }
  });
}

TEST(PairPanel, the_test_would_notice_columns_that_are_exchanged) {
  PairPanel p{.depth = 8, .width = 20, .depth_stride = 20, .width_stride = 1};
  EXPECT_LT(100, count_wrong(p, 1, 1));
}

TEST(PairPanel, keeps_nan_and_infinity) {
  PairPanel p{.depth = 2, .width = 32, .depth_stride = 32, .width_stride = 1, .type = ElementType::f32};
  GuardedBuffer source(ElementType::f32, 64), result(ElementType::bf16, 64);
  source.fill(1);
  source.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  source.as<float>()[40] = std::numeric_limits<float>::infinity();
  run_kernel(*require_kernel(prepare(p)), {source.data()}, {result.data()});
  EXPECT_TRUE(std::isnan(result.get(10)));
  EXPECT_TRUE(std::isinf(result.get(17)));
}

TEST(PairPanel, refuses_other_types) {
  EXPECT_EQ("no pairs from f16", prepare(PairPanel{.type = ElementType::f16}).error().reason);
  EXPECT_EQ("an extent is not positive", prepare(PairPanel{.depth = 0}).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
