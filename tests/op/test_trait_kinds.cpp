// The kinds that definitions state (which product, which reduction) are what the operators compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "superstep/op/core/definition.h"
#include "tests/contains.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

using Numbers = std::vector<double>;

Tensor f64(const Shape& shape, const Numbers& numbers) { return Tensor::from(shape, numbers); }

// The first elements of what a node of this operator gives.
Numbers computed(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attributes = {}) {
  const Function node = [&](Builder& builder, std::span<const Var> x) {
    return builder.node(op, x, attributes, 1);
  };
  return values(result(node, inputs));
}

double sum_of(const Numbers& x, double (*term)(double)) {
  double sum = 0;
  for (const double value : x) sum += term(value);
  return sum;
}

double folded(Folding folding, const Numbers& x) {
  const double sum = sum_of(x, [](double v) { return v; });
  const double squares = sum_of(x, [](double v) { return v * v; });
  switch (folding) {
    case Folding::sum: return sum;
    case Folding::mean: return sum / static_cast<double>(x.size());
    case Folding::product: return x[0] * x[1] * x[2];
    case Folding::largest: return std::max({x[0], x[1], x[2]});
    case Folding::smallest: return std::min({x[0], x[1], x[2]});
    case Folding::sum_of_squares: return squares;
    case Folding::sum_of_absolutes: return sum_of(x, [](double v) { return std::abs(v); });
    case Folding::root_of_squares: return std::sqrt(squares);
    case Folding::log_of_sum: return std::log(sum);
    case Folding::log_of_exponentials: return std::log(sum_of(x, [](double v) { return std::exp(v); }));
    case Folding::none: break;
  }
  return std::nan("");
}

TEST(TraitKinds, AReductionFoldsAsItSays) {
  const Numbers x{-0.5, 2, 1.75};  // no two foldings agree on them
  std::set<Folding> shown;
  for (const Definition& definition : all()) {
    const Folding folding = definition.traits.folding;
    if (folding == Folding::none) continue;
    const Numbers y = computed(definition.name, {f64({1, 1, 3}, x)});
    ASSERT_EQ(y.size(), 1U) << definition.name;
    EXPECT_NEAR(y[0], folded(folding, x), 1e-12) << definition.name;
    shown.insert(folding);
    for (const Folding other : shown) {
      if (other == folding) continue;
      EXPECT_GT(std::abs(y[0] - folded(other, x)), 1e-3) << "the test would not notice";
    }
  }
  EXPECT_EQ(shown.size(), 10U);
}

struct ProductCase {
  ProductKind kind;
  std::vector<Tensor> inputs;
  Attributes attributes;
  Numbers expected;
};

std::vector<ProductCase> product_cases() {
  const Tensor x = f64({1, 1, 3}, {1, 2, 3}), w = f64({1, 1, 2}, {10, 100});
  return {
      {ProductKind::convolution, {x, w}, {}, {210, 320}},
      {ProductKind::transposed_convolution, {x, w}, {}, {10, 120, 230, 300}},
      {ProductKind::weight_gradient, {x, w}, {{"kernel_shape", std::vector<std::int64_t>{2}}}, {210, 320}},
      {ProductKind::matrices,
       {f64({2, 1, 2}, {1, 2, 3, 4}), f64({2, 2, 1}, {10, 100, 10, 100})},
       {},
       {210, 430}},
      {ProductKind::scaled_matrices,
       {f64({2, 1}, {1, 2}), f64({2, 1}, {10, 100})},
       {{"transA", std::int64_t{1}}, {"alpha", 2.0}},
       {420}}};
}

TEST(TraitKinds, AProductIsWhatItSays) {
  std::size_t shown = 0;
  for (const Definition& definition : all())
    for (const ProductCase& item : product_cases()) {
      if (item.kind != definition.traits.product_kind) continue;
      EXPECT_EQ(computed(definition.name, item.inputs, item.attributes), item.expected) << definition.name;
      ++shown;
    }
  EXPECT_EQ(shown, product_cases().size());
}

TEST(TraitKinds, WhatIsLeftOutIsListed) {
  const auto lacks = [](std::string_view op, auto change, const char* fact) {
    Definition definition = get(op);
    EXPECT_TRUE(missing_facts(definition).empty()) << op;
    change(definition.traits);
    const std::vector<std::string> missing = missing_facts(definition);
    EXPECT_TRUE(missing.size() == 1 && contains(missing[0], fact)) << op;
  };
  lacks(
      "Conv", [](Traits& t) { t.product_kind = ProductKind::none; }, "traits.product_kind");
  lacks(
      "superstep.ConvWeightGradient", [](Traits& t) { t.work = WorkKind::movement; }, "traits.work");
  lacks(
      "ReduceSum", [](Traits& t) { t.folding = Folding::none; }, "traits.folding");
  lacks(
      "GlobalMaxPool", [](Traits& t) { t.work = WorkKind::pooling; }, "traits.work");
  lacks(
      "Softmax", [](Traits& t) { t.effort = Effort::function; }, "traits.effort");
}

}  // namespace
}  // namespace superstep::op::test
