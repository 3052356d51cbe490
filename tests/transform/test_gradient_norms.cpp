// Lengths of gradients as states of a training step: of each parameter and of all, before they are clipped.
#include <cmath>

#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/product/matmul.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

// y = x w + b, for x [2, 3]; the loss depends on nothing of `unused`.
Graph linear() {
  Graph graph("linear");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {2, 3});
  const Var w = b.state("w", Tensor::from<float>({3, 1}, {0.5F, -1, 0.25F}));
  b.output("y", op::gemm(x, w) + b.state("b", Tensor::from<float>({1}, {2})));
  b.output("other", b.state("unused", Tensor::from<float>({1}, {1})) * 2.0);
  return graph;
}

std::map<std::string, Tensor> after_a_step(const OptimizerSpec& optimizer, const TrainingStepOptions& options,
                                           float first = 1) {
  const Graph step = verified(make_training_step(linear(), {{{.output = "y"}}}, optimizer, options));
  const std::vector<Tensor> inputs{Tensor::from<float>({2, 3}, {first, 2, -1, 0.5F, 0.25F, -2}),
                                   Tensor::from<float>({2, 1}, {1, -1}), Tensor::scalar(0.125F)};
  return op::evaluate(step, inputs, {}).states;
}

TEST(GradientNorms, AreThoseOfTheGradients) {
  // Errors 0.5 - 2 - 0.25 + 2 - 1 = -0.75 and 0.25 - 0.25 - 0.5 + 2 + 1 = 2.5 of a mean over two.
  const double e[] = {-0.75, 2.5};
  const double w[] = {e[0] * 1 + e[1] * 0.5, e[0] * 2 + e[1] * 0.25, -e[0] - e[1] * 2}, b = e[0] + e[1];
  const double squares = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
  for (const double clip : {0.0, 0.1}) {
    const auto states = after_a_step({.kind = OptimizerKind::sgd, .clip = clip}, {.gradient_norms = true});
    EXPECT_NEAR(states.at("gradient_norm/w").at(0), std::sqrt(squares), 1e-6);
    EXPECT_NEAR(states.at("gradient_norm/b").at(0), std::abs(b), 1e-6);
    EXPECT_NEAR(states.at("gradient_norm").at(0), std::sqrt(squares + b * b), 1e-6);
    EXPECT_FALSE(states.contains("gradient_norm/unused")) << "it has no gradient";
  }
}

TEST(GradientNorms, ChangeNothingElse) {
  for (const double clip : {0.0, 0.1}) {
    const OptimizerSpec optimizer{.kind = OptimizerKind::adam, .clip = clip};
    const auto plain = after_a_step(optimizer, {}),
               watched = after_a_step(optimizer, {.gradient_norms = true});
    for (const auto& [name, value] : plain)
      for (std::int64_t i = 0; i < value.element_count(); ++i)
        EXPECT_EQ(watched.at(name).at(i), value.at(i)) << name;
    EXPECT_EQ(watched.size(), plain.size() + 3);
  }
}

// A step of f16 whose gradients are not finite changes nothing: these neither.
TEST(GradientNorms, OfASkippedStepAreThoseBefore) {
  const TrainingStepOptions options{.loss_scale = {.initial = 1024}, .gradient_norms = true};
  const auto states = after_a_step({}, options, INFINITY);
  EXPECT_EQ(states.at("loss_scale.skipped").at(0), 1);
  EXPECT_EQ(states.at("gradient_norm").at(0), 0);
  const auto learnt = after_a_step({}, options);
  EXPECT_NEAR(learnt.at("gradient_norm").at(0),
              after_a_step({}, {.gradient_norms = true}).at("gradient_norm").at(0), 1e-6)
      << "of the loss, without its scale";
}

}  // namespace
}  // namespace superstep::transform
