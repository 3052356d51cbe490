// Dense layers over weights as they lie, and gradients that the optimiser takes block by block.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/stored_product.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

using Source = StoredProduct::Source;

StoredProduct random_product(std::uint64_t seed, Source source) {
  static constexpr std::int64_t rows[] = {1, 2, 3, 5, 8, 12, 15, 16, 17, 64, 70, 130};
  static constexpr std::int64_t extents[] = {1, 2, 7, 16, 33, 48, 50, 64, 65, 130, 200};
  RandomStream random(seed);
  StoredProduct p;
  p.source = source;
  p.rows = rows[random.below(std::size(rows))];
  p.in = extents[random.below(std::size(extents))];
  p.out = extents[random.below(std::size(extents))];
  p.out_in = source == Source::columns || random.below(2) == 0;
  if (source == Source::narrow) p.in += p.in % 2;
  p.x_stride = p.in + 2 * static_cast<std::int64_t>(random.below(3));
  p.y_stride = p.out + static_cast<std::int64_t>(random.below(4));
  if (random.below(3) == 0) p.y_type = ElementType::bf16;
  if (random.below(2) == 0) p.epilogue.bias().activate(Activation::relu);
  return p;
}

std::string describe(const StoredProduct& p) {
  return fmt::format("{} x {} x {}, weights {}, source {}, strides {} {}, {}", p.rows, p.in, p.out,
                     p.out_in ? "[out][in]" : "[in][out]", static_cast<int>(p.source), p.x_stride, p.y_stride,
                     name_of(p.y_type));
}

std::int64_t x_at(const StoredProduct& p, std::int64_t row, std::int64_t i) {
  return p.source == Source::columns ? i * p.rows + row : row * p.x_stride + i;
}

// Weights of a narrow source are rounded like it.
double weight_at(const StoredProduct& p, const GuardedBuffer& w, std::int64_t i, std::int64_t o) {
  const double value = w.get(p.out_in ? o * p.in + i : i * p.out + o);
  return p.source == Source::narrow ? static_cast<float>(bf16(static_cast<float>(value))) : value;
}

struct Problem {
  explicit Problem(const StoredProduct& p, std::uint64_t seed)
      : x(p.source == Source::columns
              ? strided_buffer(ElementType::f32, {p.in, p.rows}, {p.rows, 1})
              : strided_buffer(p.source == Source::narrow ? ElementType::bf16 : ElementType::f32,
                               {p.rows, p.in}, {p.x_stride, 1})),
        w(ElementType::f32, p.in * p.out),
        bias(ElementType::f32, p.out),
        y(strided_buffer(p.y_type, {p.rows, p.out}, {p.y_stride, 1})) {
    x.fill_random(seed), w.fill_random(seed + 1), bias.fill_random(seed + 2);
  }
  GuardedBuffer x, w, bias, y;
};

// `spoilt`: the oracle leaves out the last input, so that a right kernel is wrong.
int wrong_elements(const StoredProduct& p, const Kernel& kernel, std::uint64_t seed, bool spoilt = false) {
  Problem problem(p, seed);
  std::vector<const void*> inputs{problem.x.data(), problem.w.data()};
  if (!p.epilogue.steps.empty()) inputs.push_back(problem.bias.data());
  run_kernel(kernel, inputs, {problem.y.data()});
  std::vector<Sum> expected;
  for (std::int64_t row = 0; row < p.rows; ++row)
    for (std::int64_t o = 0; o < p.out; ++o) {
      Sum sum;
      if (!p.epilogue.steps.empty()) sum.add(problem.bias.get(o));
      for (std::int64_t i = 0; i + (spoilt ? 1 : 0) < p.in; ++i)
        sum.add(problem.x.get(x_at(p, row, i)) * weight_at(p, problem.w, i, o));
      if (!p.epilogue.steps.empty()) sum.value = std::max(sum.value, 0.0);
      expected.push_back(sum);
    }
  return count_wrong(expected, static_cast<double>(p.in), p.y_type, [&](std::size_t i) {
    const auto number = static_cast<std::int64_t>(i);
    return problem.y.get(number / p.out * p.y_stride + number % p.out);
  });
}

void expect_right(Source source, int least) {
  for_each_instruction_set([&] {
    int ran = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const StoredProduct p = random_product(seed, source);
      for (const auto& [implementation, prepare] : stored_product().all()) {
        const Prepared kernel = prepare(p);
        if (!kernel) continue;
        ++ran;
        EXPECT_EQ(wrong_elements(p, **kernel, seed), 0) << implementation << ", " << describe(p);
      }
    }
    EXPECT_GE(ran, least);
  });
}

TEST(StoredProduct, agrees_with_the_oracle_over_rows) { expect_right(Source::rows, 10); }
TEST(StoredProduct, agrees_with_the_oracle_over_columns) { expect_right(Source::columns, 25); }
TEST(StoredProduct, agrees_with_the_oracle_over_bf16) { expect_right(Source::narrow, 25); }

// More inputs than a block of any way has.
TEST(StoredProduct, agrees_with_the_oracle_where_sums_are_long) {
  for (const Source source : {Source::rows, Source::columns, Source::narrow})
    for (const bool out_in : {false, true})
      for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
        StoredProduct p{.rows = 20, .in = 2100, .out = 70, .out_in = out_in, .source = source};
        p.x_stride = p.in, p.y_stride = p.out, p.y_type = type;
        const Prepared kernel = stored_product().prepare(p);
        if (kernel) {
          EXPECT_EQ(wrong_elements(p, **kernel, 3), 0) << describe(p);
        }
        EXPECT_EQ(kernel.has_value(), out_in || source != Source::columns) << describe(p);
      }
}

TEST(StoredProduct, the_oracle_notices_an_input_left_out) {
  StoredProduct p{.rows = 8, .in = 64, .out = 33, .out_in = true};
  p.x_stride = p.in, p.y_stride = p.out;
  EXPECT_GT(wrong_elements(p, *require_kernel(stored_product().prepare(p)), 1, true), 200);
}

TEST(StoredProduct, refuses_what_it_cannot_read) {
  StoredProduct p{.rows = 4, .in = 33, .out = 8, .source = Source::narrow};
  p.x_stride = 34, p.y_stride = 8;
  EXPECT_NE(fault_of(p), "");
  p.in = 34;
  EXPECT_EQ(fault_of(p), "");
  p.source = Source::columns;
  EXPECT_NE(fault_of(p), "");
  p.out_in = true;
  EXPECT_EQ(fault_of(p), "");
  p.y_stride = 7;
  EXPECT_NE(fault_of(p), "");
}

}  // namespace
}  // namespace superstep::kernels
