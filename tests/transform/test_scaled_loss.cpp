// Training on f16: products rounded to it, and the scale that keeps small gradients from becoming zeros.
#include <cmath>
#include <map>

#include "superstep/base/error.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/product/matmul.h"
#include "superstep/transform/precision/round_products.h"
#include "superstep/transform/training/scaled_loss.h"
#include "tests/expect_error.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

// y = x w for x [2, 3], w [3, 1].
Graph linear() {
  Graph graph("linear");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {2, 3});
  b.output("y", op::gemm(x, b.state("w", Tensor::from<float>({3, 1}, {0.5F, -1, 0.25F}))));
  return graph;
}

class Steps {
 public:
  explicit Steps(const Graph& graph) : graph_(graph) {}
  void take(const std::vector<float>& x, const std::vector<float>& target, float rate = 0.125F) {
    const std::vector<Tensor> inputs{Tensor::from<float>({2, 3}, x), Tensor::from<float>({2, 1}, target),
                                     Tensor::scalar(rate)};
    states_ = op::evaluate(graph_, inputs, states_).states;
  }
  double state(const char* name, std::int64_t at = 0) const { return states_.at(name).at(at); }

 private:
  Graph graph_;
  std::map<std::string, Tensor> states_;
};

Steps steps_of(const Graph& model, const OptimizerSpec& optimizer, const LossScale& scale) {
  return Steps(verified(make_training_step(model, {}, optimizer, {.loss_scale = scale})));
}

const std::vector<float> x = {1, 2, -1, 0.5F, 0.25F, -2}, target = {1, -1};

TEST(ScaledLoss, APowerOfTwoChangesNoBit) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamax,
                                   OptimizerKind::rmsprop, OptimizerKind::lamb}) {
    Steps plain = steps_of(linear(), {.kind = kind}, {}),
          scaled = steps_of(linear(), {.kind = kind}, {.initial = 1024});
    for (int i = 0; i < 3; ++i) plain.take(x, target), scaled.take(x, target);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(plain.state("w", i), scaled.state("w", i)) << name_of(kind);
    EXPECT_EQ(scaled.state("loss_scale"), 1024);
    EXPECT_EQ(scaled.state("loss_scale.good"), 3);
    EXPECT_EQ(scaled.state("loss_scale.skipped"), 0);
  }
}

// What overflowed taught nothing: parameters, moments and the bias correction are as if it had not been.
TEST(ScaledLoss, AStepThatIsNotFiniteIsSkippedAndHalvesTheScale) {
  const std::vector<float> huge = {3e38F, 3e38F, 1, 1, 1, 1};
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw,
                                   OptimizerKind::adamax, OptimizerKind::rmsprop, OptimizerKind::lamb}) {
    const OptimizerSpec optimizer{.kind = kind, .momentum = kind == OptimizerKind::sgd ? 0.9 : 0};
    Steps with = steps_of(linear(), optimizer, {.initial = 64}),
          without = steps_of(linear(), optimizer, {.initial = 64});
    with.take(huge, target);
    EXPECT_EQ(with.state("loss_scale"), 32);
    EXPECT_EQ(with.state("loss_scale.skipped"), 1);
    EXPECT_EQ(with.state("step"), 1) << "it was a step of the schedule";
    EXPECT_EQ(with.state("w", 1), -1);
    with.take(x, target), without.take(x, target);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(with.state("w", i), without.state("w", i)) << name_of(kind);
  }
}

TEST(ScaledLoss, GrowsAgainAndStaysWhereItIsTold) {
  Steps growing = steps_of(linear(), {}, {.initial = 64, .growth_steps = 2});
  for (int i = 0; i < 5; ++i) growing.take(x, target);
  EXPECT_EQ(growing.state("loss_scale"), 256);
  EXPECT_EQ(growing.state("loss_scale.good"), 1);
  Steps fixed = steps_of(linear(), {}, {.initial = 64, .dynamic = false, .growth_steps = 2});
  for (int i = 0; i < 5; ++i) fixed.take(x, target);
  EXPECT_EQ(fixed.state("loss_scale"), 64);
}

// The reason for it all: gradients of 1e-9 are zeros in f16, and are not where the loss is scaled.
TEST(ScaledLoss, KeepsSmallGradients) {
  const Graph model = round_products(linear());
  const std::vector<float> near = {0.5F, -1, 0.25F, 0.5F, -1, 0.25F};  // y is 1.3125
  const auto moved = [&](const LossScale& scale) {
    Steps steps = steps_of(model, {.kind = OptimizerKind::sgd}, scale);
    steps.take(near, {1.3125F - 2e-9F, 1.3125F}, 1e6F);
    steps.take({1e-4F, 0, 0, 0, 0, 0}, {0, 0}, 1e6F);
    return steps.state("w", 0) - 0.5;
  };
  EXPECT_EQ(moved({}), 0);
  EXPECT_NE(moved({.initial = 65536}), 0);
}

TEST(ScaledLoss, IsReadFromWords) {
  EXPECT_EQ(loss_scale_from_text("dynamic").initial, 65536);
  EXPECT_TRUE(loss_scale_from_text("dynamic:512").dynamic);
  EXPECT_EQ(loss_scale_from_text("dynamic:512").initial, 512);
  EXPECT_FALSE(loss_scale_from_text("1024").dynamic);
  for (const char* wrong : {"", "dynamic:", "0", "-1", "1e9", "auto"})
    expect_error(ErrorCode::invalid_argument, {"--loss-scale", "dynamic:1024"},
                 [&] { loss_scale_from_text(wrong); });
  expect_error(ErrorCode::unsupported, {"estimated forward"}, [] {
    make_training_step(linear(), {}, {},
                       {.loss_scale = {.initial = 2}, .gradient = {.kind = GradientMode::Kind::forward}});
  });
}

float half(double value) {
  Tensor tensor(ElementType::f16, {1});
  tensor.set(0, value);
  return static_cast<float>(tensor.at(0));
}

TEST(RoundProducts, RoundsOperandsResultsAndGradients) {
  const std::vector<float> values = {1.0003F, 2.0007F, -1.1F, 0.3F, 0.7F, -2.9F};
  const Graph model = verified(round_products(linear()));
  const auto outputs_of = [&](const std::vector<float>& of) {
    const std::vector<Tensor> inputs{Tensor::from<float>({2, 3}, of)};
    return op::evaluate(model, inputs).outputs[0];
  };
  const Tensor found = outputs_of(values);
  const float w[] = {0.5F, -1, 0.25F};
  for (int row = 0; row < 2; ++row) {
    float sum = 0;
    for (int k = 0; k < 3; ++k) sum += half(values[static_cast<std::size_t>(3 * row + k)]) * w[k];
    EXPECT_EQ(found.at(row), half(sum));
  }
  // Beyond the range of f16.
  EXPECT_TRUE(std::isinf(outputs_of({7e4F, 0, 0, 0, 0, 0}).at(0)));
  EXPECT_EQ(count_of(model, "Cast"), 6) << "x, w and the result, there and back";
}

}  // namespace
}  // namespace superstep::transform
