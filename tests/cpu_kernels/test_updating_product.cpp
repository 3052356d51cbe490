// A gradient and the optimiser that takes it as one step, beside the two steps.
#include <gtest/gtest.h>

#include <cstring>

#include "superstep/target/cpu/kernels/product/updating_product.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

struct Shape {
  std::int64_t rows, columns, inner;
  bool transposed;  // a lies [inner][rows], as activations of a batch do
};

UpdatingProduct update_of(const Shape& s, OptimizerRule rule, ElementType type) {
  UpdatingProduct u;
  Matmul& m = u.product;
  m.rows = s.rows, m.columns = s.columns, m.inner = s.inner;
  m.a = {.row = s.transposed ? 1 : s.inner, .column = s.transposed ? s.rows : 1, .type = type};
  m.b = {.row = s.columns, .column = 1, .type = type};
  m.c = {.row = s.columns, .column = 1};
  u.rule.rule = rule;
  u.rule.count = s.rows * s.columns;
  u.rule.weight_decay = 0.01f;
  if (rule == OptimizerRule::sgd) u.rule.momentum = 0.9f;
  return u;
}

// Parameters and their states.
struct States {
  std::vector<GuardedBuffer> arrays;
  States(std::int64_t count, std::size_t states) {
    for (std::size_t i = 0; i <= states; ++i) {
      arrays.emplace_back(ElementType::f32, count);
      arrays.back().fill_random(10 + i, 0.1, 1);
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> all;
    for (GuardedBuffer& array : arrays) all.push_back(array.data());
    return all;
  }
};

// The number of elements whose bits are not those of the product followed by the optimiser.
int different(const UpdatingProduct& u, float rate) {
  const Matmul& m = u.product;
  GuardedBuffer a(m.a.type, m.rows * m.inner), b(m.b.type, m.inner * m.columns),
      gradient(ElementType::f32, u.rule.count);
  a.fill_random(1), b.fill_random(2);
  OptimizerScalars scalars{.learning_rate = 0.1f, .gradient_scale = 0.5f, .step = 3};
  States together(u.rule.count, state_arrays(u.rule)), apart(u.rule.count, state_arrays(u.rule));
  run_kernel(*require_kernel(prepare(u)), {&scalars, a.data(), b.data()}, together.pointers());
  run_kernel(*require_kernel(matmul().prepare(m)), {a.data(), b.data()}, {gradient.data()});
  scalars.learning_rate = rate;
  run_kernel(*require_kernel(prepare(u.rule)), {&scalars, gradient.data()}, apart.pointers());
  int wrong = 0;
  for (std::size_t k = 0; k < apart.arrays.size(); ++k)
    for (std::int64_t i = 0; i < u.rule.count; ++i)
      wrong += std::memcmp(together.arrays[k].as<float>() + i, apart.arrays[k].as<float>() + i, 4) != 0;
  return wrong;
}

// One block, several, a last one of one row; blocks of one row, which alone are longer than a block.
constexpr Shape shapes[] = {
    {7, 30, 8, true}, {300, 260, 8, true}, {257, 256, 5, true}, {129, 256, 64, false}, {3, 40000, 2, true}};

TEST(UpdatingProduct, gives_the_bits_of_the_product_and_the_optimiser) {
  for_each_instruction_set([] {
    for (const Shape& shape : shapes)
      for (const OptimizerRule rule : {OptimizerRule::sgd, OptimizerRule::adam, OptimizerRule::adamw}) {
        const UpdatingProduct u = update_of(shape, rule, ElementType::f32);
        EXPECT_EQ(different(u, 0.1f), 0) << shape.rows << " x " << shape.columns << " x " << shape.inner;
      }
    const UpdatingProduct narrow = update_of({300, 260, 8, true}, OptimizerRule::adam, ElementType::bf16);
    EXPECT_EQ(different(narrow, 0.1f), 0);
  });
}

TEST(UpdatingProduct, another_rate_shows) {
  EXPECT_GT(different(update_of(shapes[0], OptimizerRule::adam, ElementType::f32), 0.11f), 200);
}

TEST(UpdatingProduct, refuses_gradients_that_are_more_than_a_product) {
  const UpdatingProduct fine = update_of(shapes[0], OptimizerRule::adam, ElementType::f32);
  ASSERT_TRUE(prepare(fine).has_value());
  UpdatingProduct u = fine;
  u.product.accumulate = true;
  EXPECT_FALSE(prepare(u).has_value());
  u = fine;
  u.product.batch[0] = 2;
  EXPECT_FALSE(prepare(u).has_value());
  u = fine;
  u.rule.count -= 1;
  EXPECT_FALSE(prepare(u).has_value());
  u = fine;
  u.product.c.type = ElementType::bf16;
  EXPECT_FALSE(prepare(u).has_value());
}

}  // namespace
}  // namespace superstep::kernels
