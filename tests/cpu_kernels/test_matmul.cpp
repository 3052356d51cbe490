#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/matmul.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

// Strides of a matrix whose three or four dimensions lie in a random order, sometimes with gaps.
MatrixStrides random_strides(RandomStream& random, const Matmul& m, std::int64_t rows, std::int64_t columns,
                             bool unit_stride, bool may_repeat) {
  struct Axis {
    std::int64_t extent, *stride;
  };
  MatrixStrides s;
  std::vector<Axis> axes{
      {m.batch[0], &s.batch[0]}, {m.batch[1], &s.batch[1]}, {rows, &s.row}, {columns, &s.column}};
  const std::size_t inner = unit_stride ? 2 + random.below(2) : random.below(4);
  std::swap(axes[inner], axes[3]);
  if (random.below(2) == 0) std::swap(axes[0], axes[2]);
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    *axes[i].stride = stride;
    stride *= axes[i].extent;
    if (random.below(4) == 0) stride += static_cast<std::int64_t>(random.below(5));
  }
  if (may_repeat && random.below(5) == 0) s.batch[0] = 0;
  return s;
}

GuardedBuffer matrix(const MatrixStrides& s, const Matmul& m, std::int64_t rows, std::int64_t columns) {
  return strided_buffer(s.type, {m.batch[0], m.batch[1], rows, columns},
                        {s.batch[0], s.batch[1], s.row, s.column});
}

Matmul random_matmul(std::uint64_t seed) {
  RandomStream random(seed);
  static constexpr std::int64_t extents[] = {1, 2, 3, 7, 9, 16, 17, 32, 33, 64, 81, 130};
  const auto pick = [&] { return extents[random.below(std::size(extents))]; };
  Matmul m;
  m.batch = {1 + static_cast<std::int64_t>(random.below(3)), 1 + static_cast<std::int64_t>(random.below(3))};
  m.rows = pick(), m.columns = pick(), m.inner = pick();
  m.a = random_strides(random, m, m.rows, m.inner, false, true);
  m.b = random_strides(random, m, m.inner, m.columns, false, true);
  m.c = random_strides(random, m, m.rows, m.columns, true, false);
  m.accumulate = random.below(3) == 0;
  return m;
}

std::string describe(const Matmul& m) {
  const auto strides = [](const MatrixStrides& s) {
    return fmt::format("({}, {}; {}, {})", s.batch[0], s.batch[1], s.row, s.column);
  };
  return fmt::format("batch {} x {}, {} x {} x {}, a {} b {} c {}{}", m.batch[0], m.batch[1], m.rows,
                     m.columns, m.inner, strides(m.a), strides(m.b), strides(m.c),
                     m.accumulate ? ", accumulate" : "");
}

template <class Body>
void for_each_index(const Matmul& m, const Body& body) {
  for (std::int64_t p = 0; p < m.batch[0]; ++p)
    for (std::int64_t q = 0; q < m.batch[1]; ++q)
      for (std::int64_t i = 0; i < m.rows; ++i)
        for (std::int64_t j = 0; j < m.columns; ++j) body(p, q, i, j);
}

std::int64_t at(const MatrixStrides& s, std::int64_t p, std::int64_t q, std::int64_t row,
                std::int64_t column) {
  return p * s.batch[0] + q * s.batch[1] + row * s.row + column * s.column;
}

// The number of wrong elements, or -1 when the implementation refused.
int wrong_elements(const Matmul& m, const std::string& implementation, std::uint64_t seed) {
  Prepared prepared = matmul().prepare(m, implementation);
  if (!prepared) return -1;
  GuardedBuffer a = matrix(m.a, m, m.rows, m.inner), b = matrix(m.b, m, m.inner, m.columns),
                c = matrix(m.c, m, m.rows, m.columns);
  a.fill_random(seed), b.fill_random(seed + 1), c.fill_random(seed + 2);
  std::vector<Sum> expected;
  std::vector<std::int64_t> where;
  for_each_index(m, [&](std::int64_t p, std::int64_t q, std::int64_t i, std::int64_t j) {
    Sum sum;
    where.push_back(at(m.c, p, q, i, j));
    if (m.accumulate) sum.add(c.get(where.back()));
    for (std::int64_t k = 0; k < m.inner; ++k)
      sum.add(a.get(at(m.a, p, q, i, k)) * b.get(at(m.b, p, q, k, j)));
    expected.push_back(sum);
  });
  run_kernel(**prepared, {a.data(), b.data()}, {c.data()});
  return count_wrong(expected, static_cast<double>(m.inner), m.c.type,
                     [&](std::size_t i) { return c.get(where[i]); });
}

TEST(Matmul, agrees_with_the_oracle_whatever_the_strides) {
  for_each_instruction_set([] {
    int ran = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Matmul m = random_matmul(seed);
      for (const auto& [implementation, _] : matmul().all()) {
        const int wrong = wrong_elements(m, implementation, seed);
        EXPECT_LE(wrong, 0) << implementation << ", seed " << seed << ": " << describe(m);
        ran += wrong >= 0;
      }
    }
    EXPECT_GE(ran, 60);
  });
}

TEST(Matmul, multiplies_bf16_into_f32_and_bf16) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 200; seed < 240; ++seed) {
      Matmul m = random_matmul(seed);
      m.a.type = m.b.type = ElementType::bf16;
      if (seed % 2 == 0) m.c.type = ElementType::bf16, m.accumulate = false;
      for (const auto& [implementation, _] : matmul().all())
        EXPECT_LE(wrong_elements(m, implementation, seed), 0)
            << implementation << ", seed " << seed << ": " << describe(m);
    }
  });
}

// A single column, or row, could be read either way; what runs along the columns says which it is.
TEST(Matmul, adds_a_bias_along_the_columns_however_few_there_are) {
  for_each_instruction_set([] {
    for (const std::int64_t rows : {1, 2, 5, 40})
      for (const std::int64_t columns : {1, 2, 3, 33}) {
        Matmul m{.rows = rows, .columns = columns, .inner = 1};
        m.a = {{0, 0}, 1, 1};
        m.b = m.c = {{0, 0}, columns, 1};
        m.epilogue.bias();
        std::vector<float> a(static_cast<std::size_t>(rows)), b(static_cast<std::size_t>(columns), 1),
            bias(b), c(static_cast<std::size_t>(rows * columns)), expected;
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
        for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<float>(100 * (j + 1));
        for (const float row : a)
          for (const float column : bias) expected.push_back(row + column);
        for (const auto& [implementation, _] : matmul().all()) {
          Prepared kernel = matmul().prepare(m, implementation);
          if (!kernel) continue;
          run_kernel(**kernel, {a.data(), b.data(), bias.data()}, {c.data()});
          EXPECT_EQ(c, expected) << implementation << ", " << rows << " x " << columns;
        }
      }
  });
}

// Steps of a page or more between the rows of the left operand, which is then copied in slices.
TEST(Matmul, agrees_with_the_oracle_where_rows_lie_far_apart) {
  for_each_instruction_set([] {
    for (const std::int64_t inner : {2, 70, 300, 513}) {
      Matmul m;
      m.rows = 130, m.columns = 96, m.inner = inner;
      m.batch = {1, 2};
      m.a = {{0, 130 * inner}, inner % 2 == 0 ? 1 : inner, inner % 2 == 0 ? 130 : 1};
      m.b = {{0, 96}, 256, 1};
      m.c = {{0, 130 * 96}, 96, 1};
      m.accumulate = inner == 300;
      EXPECT_EQ(wrong_elements(m, "portable", 5), 0) << describe(m);
      EXPECT_LE(wrong_elements(m, "libxsmm", 5), 0) << describe(m);
      const KernelPointer kernel = require_kernel(matmul().prepare(m));
      EXPECT_NE(kernel->info().name.find("b copied"), std::string::npos) << kernel->info().name;
    }
  });
}

TEST(Matmul, the_test_would_notice_a_wrong_extent) {
  Matmul m;
  m.rows = 20, m.columns = 30, m.inner = 40;
  m.a = {{0, 0}, 40, 1}, m.b = {{0, 0}, 30, 1}, m.c = {{0, 0}, 30, 1};
  GuardedBuffer a(ElementType::f32, 800), b(ElementType::f32, 1200), c(ElementType::f32, 600);
  a.fill_random(1), b.fill_random(2);
  run_kernel(*require_kernel(matmul().prepare(m)), {a.data(), b.data()}, {c.data()});
  std::vector<Sum> expected(600);
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t j = 0; j < 30; ++j)
      for (std::int64_t k = 0; k < 39; ++k)
        expected[static_cast<std::size_t>(i * 30 + j)].add(a.get(i * 40 + k) * b.get(k * 30 + j));
  EXPECT_LT(500, count_wrong(expected, 40, ElementType::f32,
                             [&](std::size_t i) { return c.get(static_cast<std::int64_t>(i)); }));
}

// By every implementation that this build has for the instruction set; of generated code there is none
// without AVX2.
TEST(Matmul, cuts_long_products_into_blocks) {
  const bool generates = available_instruction_sets().back() >= InstructionSet::avx2;
  Matmul m;
  m.rows = 50, m.columns = 150, m.inner = 2500;
  m.a = {{0, 0}, 2500, 1}, m.b = {{0, 0}, 150, 1}, m.c = {{0, 0}, 150, 1};
  const MatrixStrides by_rows = m.b, by_columns{{0, 0}, 1, 2500};
  for (const MatrixStrides& b : {by_rows, by_columns})
    for (const auto& [named, _] : matmul().all()) {
      const std::string implementation(named);
      m.b = b;
      if (implementation == "libxsmm" && !generates) {
        EXPECT_FALSE(matmul().prepare(m, implementation));
        continue;
      }
      const std::string name = require_kernel(matmul().prepare(m, implementation))->info().name;
      EXPECT_NE(name.find(" x 1024 blocks"), std::string::npos) << name;
      EXPECT_EQ(0, wrong_elements(m, implementation, 7)) << name;
    }
}

// Operands that are packed: in tiles that several panels share, in groups of tiles, in blocks of an odd
// depth.
TEST(Matmul, cuts_long_products_of_bf16_into_blocks) {
  Matmul m;
  m.a.type = m.b.type = ElementType::bf16;
  m.rows = 700, m.columns = 150, m.inner = 601;  // a by columns: the right operand is transposed
  m.a.row = 1, m.a.column = 700, m.b.row = 150, m.c.row = 150;
  EXPECT_LE(wrong_elements(m, "libxsmm", 1), 0);  // -1: there are no such products
  m.rows = 20, m.inner = 1101;
  m.a.column = 20;
  EXPECT_LE(wrong_elements(m, "libxsmm", 2), 0);
  m.accumulate = true;
  EXPECT_LE(wrong_elements(m, "libxsmm", 3), 0);
}

TEST(Matmul, packs_an_operand_that_a_batch_shares_once) {
  Matmul m;
  m.a.type = m.b.type = ElementType::bf16;
  m.batch = {4, 3}, m.rows = 16, m.columns = 40, m.inner = 50;
  m.a.row = 1, m.a.column = 192, m.a.batch = {16, 64};
  m.b.row = 40;  // one for all
  m.c.row = 40, m.c.batch = {3 * 640, 640};
  for (std::uint64_t seed : {1, 2, 3}) EXPECT_LE(wrong_elements(m, "libxsmm", seed), 0);
}

TEST(Matmul, refuses_what_it_cannot_do_and_says_why) {
  Matmul m;
  m.rows = m.columns = m.inner = 4;
  m.a = m.b = {{0, 0}, 4, 1};
  m.c = {{0, 0}, 8, 2};
  EXPECT_EQ("the result has no unit stride", fault_of(m));
  EXPECT_EQ("libxsmm, portable", matmul().prepare(m).error().implementation);
  m.c = {{0, 0}, 4, 1};
  m.a.type = ElementType::f16;
  EXPECT_EQ("the operands differ in type", fault_of(m));
  m.b.type = ElementType::f16;
  EXPECT_EQ("no products of f16", fault_of(m));
}

}  // namespace
}  // namespace superstep::kernels
