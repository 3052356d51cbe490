// Products of bf16 pairs by our own loops, and in f32.
#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "tests/cpu_kernels/support/assumed_pair_rate.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

// Rows that fill vectors and that do not, columns of every remainder, both orders of B, sums of two products.
void check(std::int64_t m, std::int64_t n, std::int64_t k, bool b_pairs, bool accumulate,
           ProductMaker maker = ProductMaker::portable) {
  const std::int64_t a_stride = m + 1, c_stride = m + 2;
  ProductShape shape{.m = m, .n = n, .k = k, .a_stride = a_stride, .c_stride = c_stride};
  shape.accumulate = accumulate;
  shape.type = ElementType::bf16;
  shape.pairs = true;
  shape.b_pairs = b_pairs;
  shape.b_k_stride = b_pairs ? n : 1;
  shape.b_n_stride = b_pairs ? 1 : k + 2;
  const std::int64_t a_size = k / 2 * 2 * a_stride, b_size = b_pairs ? k * n : n * (k + 2);
  GuardedBuffer a(ElementType::bf16, 2 * a_size), b(ElementType::bf16, 2 * b_size),
      c(ElementType::f32, n * c_stride);
  a.fill_random(1), b.fill_random(2), c.fill_random(3);
  std::vector<Sum> expected;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      Sum sum;
      if (accumulate) sum.add(c.get(j * c_stride + i));
      for (std::int64_t both = 0; both < 2; ++both)
        for (std::int64_t d = 0; d < k; ++d)
          sum.add(a.get(both * a_size + (d / 2 * a_stride + i) * 2 + d % 2) *
                  b.get(both * b_size + (b_pairs ? (d / 2 * n + j) * 2 + d % 2 : j * (k + 2) + d)));
      expected.push_back(sum);
    }
  const auto product = BatchReduceProduct::prepare(shape, maker);
  ASSERT_TRUE(product) << product.error();
  const std::uint64_t a_offsets[] = {0, static_cast<std::uint64_t>(2 * a_size)},
                      b_offsets[] = {0, static_cast<std::uint64_t>(2 * b_size)};
  (*product)(a.data(), b.data(), c.as<float>(), 2, a_offsets, b_offsets);
  EXPECT_EQ(0, count_wrong(expected, static_cast<double>(2 * k), ElementType::f32,
                           [&](std::size_t e) {
                             const auto at = static_cast<std::int64_t>(e);
                             return c.get(at / m * c_stride + at % m);
                           }))
      << m << " x " << n << " x " << k;
}

TEST(PairProduct, agrees_with_the_oracle_whatever_the_shape) {
  for_each_instruction_set([] {
    for (const std::int64_t m : {1, 15, 16, 33, 64, 100})
      for (const std::int64_t n : {1, 2, 5, 6, 11, 13})
        for (const bool b_pairs : {false, true})
          check(m, n, 2 * (1 + (m + n) % 7), b_pairs, (m + n) % 2 == 0);
  });
}

// Depths of one block, of several, of several and a part; blocks of columns likewise; two products at once.
TEST(PairProduct, multiplied_in_f32_agrees_with_the_oracle_whatever_the_shape) {
  for_each_instruction_set([] {
    if (instruction_set() < InstructionSet::avx2) return;
    for (const std::int64_t m : {1, 7, 16, 33, 64, 100, 128})
      for (const std::int64_t n : {11, 12, 29, 60, 67})
        for (const std::int64_t k : {2, 18, 64, 130, 256, 300, 600})
          if ((m + n + k) % 3 != 0) check(m, n, k, false, (m + n + k) % 2 == 0, ProductMaker::libxsmm);
  });
}

TEST(PairProduct, is_in_f32_where_pairs_are_slow_and_columns_are_many) {
  const InstructionSet widest = instruction_set();
  ProductShape shape{.m = 64, .n = 60, .k = 64, .a_stride = 64, .b_n_stride = 64, .c_stride = 64};
  shape.type = ElementType::bf16;
  shape.pairs = true;
  ProductShape few = shape;
  few.n = 4;
  for (const InstructionSet set : available_instruction_sets()) {
    set_instruction_set(set);
    const bool vectors = set >= InstructionSet::avx2, pairs = set >= InstructionSet::avx512_bf16;
    for (const PairRate rate : {PairRate::slow, PairRate::fast}) {
      const AssumedPairRate assumed(rate);
      const bool fast = pairs && rate == PairRate::fast;
      EXPECT_EQ(multiplies_pairs_fast(), fast) << name_of(set);
      EXPECT_EQ(multiplied_as(ElementType::bf16), fast ? ElementType::bf16 : ElementType::f32)
          << name_of(set);
      EXPECT_EQ(widens(shape), vectors && !fast) << name_of(set);
      EXPECT_FALSE(widens(few)) << name_of(set);
    }
  }
  set_instruction_set(widest);
}

// The rate is measured once: the same plan must come out whoever asks.
TEST(PairProduct, has_one_rate_for_the_whole_process) {
  const bool fast = multiplies_pairs_fast();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(multiplies_pairs_fast(), fast);
}

TEST(PairProduct, is_made_by_our_own_loops_where_both_factors_are_in_pairs) {
  ProductShape shape{.m = 16, .n = 4, .k = 8, .a_stride = 16, .b_k_stride = 4, .c_stride = 16};
  shape.type = ElementType::bf16;
  shape.pairs = shape.b_pairs = true;
  EXPECT_FALSE(BatchReduceProduct::prepare(shape, ProductMaker::libxsmm));
  EXPECT_TRUE(BatchReduceProduct::prepare(shape, ProductMaker::portable));
}

}  // namespace
}  // namespace superstep::kernels
