// Sums of products of small matrices against naive loops: whole, cut into pieces of depth, tap by tap.
#include <gtest/gtest.h>

#include <vector>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"

namespace superstep::kernels {
namespace {

std::vector<float> draw(std::int64_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform()) - 0.5f;
  return values;
}

struct Case {
  std::int64_t m, n, k;
  std::uint64_t count;
  bool accumulate, transposed;
};

void expect_agrees(const Case& t, ProductMaker maker) {
  const std::int64_t a_stride = t.m + 3, c_stride = t.m + 5, long_side = (t.transposed ? t.n : t.k) + 4;
  const std::int64_t a_size = t.k * a_stride, b_size = (t.transposed ? t.k : t.n) * long_side;
  const auto count = static_cast<std::int64_t>(t.count);
  const std::vector<float> a = draw(count * a_size, 1), b = draw(count * b_size, 2);
  std::vector<float> c = draw(t.n * c_stride, 3);
  const std::vector<float> before = c;
  ProductShape shape{.m = t.m, .n = t.n, .k = t.k, .a_stride = a_stride, .c_stride = c_stride};
  shape.b_k_stride = t.transposed ? long_side : 1;
  shape.b_n_stride = t.transposed ? 1 : long_side;
  shape.accumulate = t.accumulate;
  const auto product = BatchReduceProduct::prepare(shape, maker);
  if (!product) return;  // on this instruction set others make it
  std::vector<std::uint64_t> a_offsets, b_offsets;
  for (std::int64_t i = 0; i < count; ++i) {
    a_offsets.push_back(static_cast<std::uint64_t>((count - 1 - i) * a_size) * sizeof(float));
    b_offsets.push_back(static_cast<std::uint64_t>(i * b_size) * sizeof(float));
  }
  (*product)(a.data(), b.data(), c.data(), t.count, a_offsets.data(), b_offsets.data());
  for (std::int64_t n = 0; n < t.n; ++n)
    for (std::int64_t m = 0; m < c_stride; ++m) {
      const std::size_t at = static_cast<std::size_t>(n * c_stride + m);
      double sum = t.accumulate || m >= t.m ? before[at] : 0;
      for (std::int64_t i = 0; m < t.m && i < count; ++i)
        for (std::int64_t k = 0; k < t.k; ++k)
          sum +=
              static_cast<double>(a[static_cast<std::size_t>((count - 1 - i) * a_size + k * a_stride + m)]) *
              b[static_cast<std::size_t>(i * b_size + n * shape.b_n_stride + k * shape.b_k_stride)];
      ASSERT_NEAR(c[at], sum, 1e-6 * static_cast<double>(count * t.k))
          << name_of(maker) << " " << t.m << "x" << t.n << "x" << t.k << " times " << t.count << " at " << m
          << ", " << n;
    }
}

// Rows of A and columns of B lie along the inner dimension; two summands.
void expect_dots_agree(std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  const std::int64_t side = k + 4, c_stride = m + 2, count = 2;
  const std::vector<float> a = draw(count * m * side, 1), b = draw(count * n * side, 2);
  std::vector<float> c = draw(n * c_stride, 3);
  const std::vector<float> before = c;
  ProductShape shape{.m = m, .n = n, .k = k, .a_stride = side, .c_stride = c_stride};
  shape.b_n_stride = side;
  shape.accumulate = accumulate;
  const auto product = BatchReduceProduct::prepare(shape, ProductMaker::dot);
  ASSERT_EQ(product.has_value(), m <= (n <= 4 ? 32 : 8)) << m << "x" << n;
  if (!product) return;
  const auto bytes = [](std::int64_t elements) {
    return static_cast<std::uint64_t>(elements) * sizeof(float);
  };
  const std::vector<std::uint64_t> a_offsets{bytes(m * side), 0}, b_offsets{0, bytes(n * side)};
  (*product)(a.data(), b.data(), c.data(), count, a_offsets.data(), b_offsets.data());
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < c_stride; ++row) {
      const auto at = static_cast<std::size_t>(column * c_stride + row);
      double sum = accumulate || row >= m ? before[at] : 0;
      for (std::int64_t i = 0; row < m && i < count; ++i)
        for (std::int64_t j = 0; j < k; ++j)
          sum += static_cast<double>(a[static_cast<std::size_t>(((1 - i) * m + row) * side + j)]) *
                 b[static_cast<std::size_t>((i * n + column) * side + j)];
      ASSERT_NEAR(c[at], sum, 1e-6 * static_cast<double>(count * k)) << m << "x" << n << " at " << row;
    }
}

TEST(BatchReduce, AgreesWithNaiveLoops) {
  const InstructionSet first = instruction_set();
  for (const InstructionSet set : available_instruction_sets()) {
    set_instruction_set(set);
    for (const Case& t : {Case{64, 60, 64, 1, false, false},  Case{64, 60, 300, 1, false, false},
                          Case{64, 13, 65, 1, true, false},   Case{64, 24, 128, 9, false, false},
                          Case{40, 12, 200, 3, true, false},  Case{64, 11, 300, 2, false, false},
                          Case{64, 30, 1024, 1, true, false}, Case{16, 504, 257, 2, false, false},
                          Case{64, 8, 256, 1, false, false},  Case{64, 3, 301, 3, true, false},
                          Case{32, 12, 513, 2, false, true},  Case{64, 5, 700, 1, true, true},
                          Case{7, 33, 600, 2, false, false},  Case{64, 48, 260, 1, true, true},
                          Case{64, 18, 72, 5, false, true},   Case{8, 13, 27, 9, false, false},
                          Case{8, 25, 8, 9, true, false},     Case{3, 12, 40, 2, false, true},
                          Case{1, 7, 5, 3, true, true},       Case{4, 1, 9, 27, false, false}})
      for (const ProductMaker maker : {ProductMaker::libxsmm, ProductMaker::portable})
        expect_agrees(t, maker);
  }
  set_instruction_set(first);
}

// Few columns: up to 32 rows along the inner dimension, in blocks; many columns: up to eight.
TEST(BatchReduce, DotProductsAgreeWithNaiveLoops) {
  const InstructionSet first = instruction_set();
  for (const InstructionSet set : available_instruction_sets()) {
    set_instruction_set(set);
    for (const std::int64_t n : {1, 3, 4, 5})
      for (const std::int64_t m : {1, 8, 9, 10, 17, 32, 33})
        for (const bool accumulate : {false, true}) expect_dots_agree(m, n, 70, accumulate);
  }
  set_instruction_set(first);
}

}  // namespace
}  // namespace superstep::kernels
