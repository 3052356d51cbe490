// Products by matrix registers (Intel AMX), where the processor has them.
#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/matrix_tiles.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

class MatrixTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (instruction_set() < InstructionSet::amx) GTEST_SKIP() << "this processor has no matrix registers";
  }
};

ProductShape shape_of(ElementType type, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  ProductShape shape{.m = m, .n = n, .k = k, .a_stride = m + 1, .b_n_stride = k + 4, .c_stride = m + 2};
  shape.accumulate = accumulate;
  shape.type = type;
  shape.pairs = type == ElementType::bf16;
  return shape;
}

// Operands of two products that are summed, their gaps guarded, and where the elements of A and B lie.
struct Operands {
  explicit Operands(const ProductShape& shape)
      : s(shape),
        group(s.pairs ? 2 : 4),
        a_size(s.k * s.a_stride),
        b_size(s.n * s.b_n_stride),
        a(s.pairs ? ElementType::bf16 : ElementType::i8, 2 * a_size),
        b(s.type, 2 * b_size),
        c(s.pairs ? ElementType::f32 : ElementType::i32, s.n * s.c_stride) {
    a.fill_random(1), b.fill_random(2), c.fill_random(3);
  }
  Sum expected(std::int64_t i, std::int64_t j) const {
    Sum sum;
    if (s.accumulate) sum.add(c.get(j * s.c_stride + i));
    for (std::int64_t both = 0; both < 2; ++both)
      for (std::int64_t d = 0; d < s.k; ++d)
        sum.add(a.get(both * a_size + (d / group * s.a_stride + i) * group + d % group) *
                b.get(both * b_size + j * s.b_n_stride + d));
    return sum;
  }
  ProductShape s;
  std::int64_t group, a_size, b_size;
  GuardedBuffer a, b, c;
};

void check(const ProductShape& s) {
  const auto product = MatrixTileProduct::prepare(s);
  ASSERT_TRUE(product) << product.error();
  Operands o(s);
  std::vector<Sum> expected;
  for (std::int64_t j = 0; j < s.n; ++j)
    for (std::int64_t i = 0; i < s.m; ++i) expected.push_back(o.expected(i, j));
  const std::int64_t bytes = s.pairs ? 2 : 1;
  const std::uint64_t a_offsets[] = {0, static_cast<std::uint64_t>(bytes * o.a_size)},
                      b_offsets[] = {0, static_cast<std::uint64_t>(bytes * o.b_size)};
  (*product)(o.a.data(), o.b.data(), static_cast<float*>(o.c.data()), 2, a_offsets, b_offsets);
  const double terms = s.pairs ? static_cast<double>(2 * s.k) : 0;
  EXPECT_EQ(0, count_wrong(expected, terms, ElementType::f32,
                           [&](std::size_t e) {
                             const auto at = static_cast<std::int64_t>(e);
                             return o.c.get(at / s.m * s.c_stride + at % s.m);
                           }))
      << s.m << " x " << s.n << " x " << s.k;
}

// Blocks that are whole, of one register, of one and a part, of a part; columns in one step and in several.
TEST_F(MatrixTiles, agree_with_the_oracle_whatever_the_shape) {
  for (const ElementType type : {ElementType::bf16, ElementType::u8})
    for (const std::int64_t m : {16, 23, 32, 47, 64, 100})
      for (const std::int64_t n : {8, 16, 19, 32, 33, 60}) {
        const std::int64_t k = std::int64_t{48} * (1 + (m + n) % 4);
        if (m * n * k >= 32 * 1024) check(shape_of(type, m, n, k, (m + n) % 2 == 0));
      }
}

TEST_F(MatrixTiles, take_columns_that_no_whole_register_divides) {
  for (const std::int64_t k : {40, 72, 96, 112}) check(shape_of(ElementType::bf16, 48, 36, k, false));
  for (const std::int64_t k : {36, 80, 144}) check(shape_of(ElementType::u8, 48, 36, k, true));
}

#if defined(__x86_64__)
TEST_F(MatrixTiles, find_registers_that_others_set_up) {
  check(shape_of(ElementType::bf16, 40, 40, 64, false));
  MatrixTileSetting other;
  other.rows.fill(0);
  for (std::size_t i = 0; i < 8; ++i) other.rows[i] = 1, other.row_bytes[i] = 4;
  asm volatile("ldtilecfg %0" : : "m"(other));
  check(shape_of(ElementType::bf16, 40, 40, 64, false));
  asm volatile("tilerelease");
  check(shape_of(ElementType::bf16, 40, 40, 64, false));
}
#endif

TEST_F(MatrixTiles, refuse_with_a_reason) {
  const auto reason = [](const ProductShape& shape) {
    const auto product = MatrixTileProduct::prepare(shape);
    return product ? std::string() : product.error();
  };
  EXPECT_EQ(reason(shape_of(ElementType::bf16, 8, 64, 64, false)), "too small for matrix registers");
  EXPECT_EQ(reason(shape_of(ElementType::bf16, 64, 64, 2 * 37, false)),
            "no step divides the inner dimension");
  EXPECT_EQ(reason(shape_of(ElementType::f32, 64, 64, 64, false)),
            "matrix registers multiply pairs of bf16 and quads of bytes");
  ProductShape turned = shape_of(ElementType::bf16, 64, 64, 64, false);
  turned.b_k_stride = 64, turned.b_n_stride = 1;
  EXPECT_EQ(reason(turned), "the inner dimension is not contiguous");
  set_instruction_set(InstructionSet::avx512_bf16);
  EXPECT_EQ(reason(shape_of(ElementType::bf16, 64, 64, 64, false)), "there are no matrix registers");
  set_instruction_set(InstructionSet::amx);
}

}  // namespace
}  // namespace superstep::kernels
