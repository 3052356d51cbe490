// A loss that a model brings along: built of inputs, outputs and targets, beside terms or in their place.
#include <cmath>

#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

// energy = x w, force = x v, for x [4, 2].
Graph two_outputs() {
  Graph graph("field");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {4, 2});
  b.output("energy", op::gemm(x, b.state("w", Tensor::from<float>({2, 1}, {0.5F, -1}))));
  b.output("force", op::gemm(x, b.state("v", Tensor::from<float>({2, 2}, {1, 0.25F, -0.5F, 2}))));
  return graph;
}

Var mean_square(Var x) { return op::reduce_mean(x * x); }

// The same as two terms of kind mse.
LossSpec energy_and_force() {
  return {.terms = {}, .own = [](LossPorts& ports) {
            const Var energy = ports.output("energy"), force = ports.output("force");
            // One after the other: the order in which they are asked for is that of the step's inputs.
            const Var energy_target = ports.target("energy_target", energy.type());
            const Var force_target = ports.target("force_target", force.type());
            return mean_square(energy - energy_target) * 0.5 + mean_square(force - force_target);
          }};
}

const std::vector<float> xs = {1, 2, -1, 0.5F, 0.25F, -2, 3, 1};

op::Evaluation one_step(const LossSpec& loss, std::vector<Tensor> targets) {
  const Graph step = verified(make_training_step(two_outputs(), loss, {.kind = OptimizerKind::sgd}));
  std::vector<Tensor> inputs{Tensor::from<float>({4, 2}, xs)};
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  inputs.push_back(Tensor::scalar(0.125F));
  return op::evaluate(step, inputs);
}

TEST(OwnLoss, IsWhatTermsAreWhereItSaysTheSame) {
  const LossSpec terms{{LossTerm{.output = "energy", .target = "energy_target", .weight = 0.5},
                        LossTerm{.output = "force", .target = "force_target"}}};
  const std::vector<Tensor> targets{random_tensor(ElementType::f32, {4, 1}, 1),
                                    random_tensor(ElementType::f32, {4, 2}, 2)};
  const op::Evaluation own = one_step(energy_and_force(), targets), known = one_step(terms, targets);
  EXPECT_EQ(own.outputs[0].at(0), known.outputs[0].at(0));
  for (const char* state : {"w", "v"})
    for (std::int64_t i = 0; i < known.states.at(state).element_count(); ++i)
      EXPECT_EQ(own.states.at(state).at(i), known.states.at(state).at(i)) << state;
  // The other order of targets is another loss.
  EXPECT_NE(
      one_step(energy_and_force(), {targets[0], random_tensor(ElementType::f32, {4, 2}, 3)}).outputs[0].at(0),
      known.outputs[0].at(0));
}

TEST(OwnLoss, CanDoWithoutLabels) {
  const LossSpec loss{.terms = {}, .own = [](LossPorts& ports) {
                        return op::reduce_mean(op::abs(ports.output("force") - ports.input("x")));
                      }};
  const Graph step = verified(make_training_step(two_outputs(), loss, {}));
  ASSERT_EQ(step.inputs().size(), 2U);  // x and the learning rate
  EXPECT_TRUE(splittable(step).has_value());
  EXPECT_GT(one_step(loss, {}).outputs[0].at(0), 0);
}

TEST(OwnLoss, KnowsWhichOutputsThereAre) {
  std::vector<bool> there;
  const LossSpec loss{.terms = {}, .own = [&](LossPorts& ports) {
                        there = {ports.has_output("force"), ports.has_output("stress")};
                        return op::reduce_mean(ports.output("force"));
                      }};
  make_training_step(two_outputs(), loss, {});
  EXPECT_EQ(there, (std::vector<bool>{true, false}));
}

// w and v move against gradients that together have the norm that is asked for, in their own direction.
TEST(OwnLoss, LongGradientsAreClipped) {
  const std::vector<Tensor> targets{random_tensor(ElementType::f32, {4, 1}, 1),
                                    random_tensor(ElementType::f32, {4, 2}, 2)};
  const auto moved_by = [&](double clip) {
    OptimizerSpec optimizer{.kind = OptimizerKind::sgd};
    optimizer.clip = clip;
    const Graph step = verified(make_training_step(two_outputs(), energy_and_force(), optimizer));
    std::vector<Tensor> inputs{Tensor::from<float>({4, 2}, xs), targets[0], targets[1], Tensor::scalar(1.0F)};
    const op::Evaluation after = op::evaluate(step, inputs);
    std::vector<double> moves;
    for (const char* state : {"w", "v"}) {
      const Tensor& before = step.value(step.find_value(state)).data;
      for (std::int64_t i = 0; i < before.element_count(); ++i)
        moves.push_back(after.states.at(state).at(i) - before.at(i));
    }
    return moves;
  };
  const auto norm = [](const std::vector<double>& moves) {
    double sum = 0;
    for (const double each : moves) sum += each * each;
    return std::sqrt(sum);
  };
  const auto free = moved_by(0), clipped = moved_by(0.25), loose = moved_by(1e3);
  ASSERT_GT(norm(free), 0.5);
  EXPECT_NEAR(norm(clipped), 0.25, 1e-5);
  EXPECT_EQ(loose, free);
  for (std::size_t i = 0; i < free.size(); ++i) EXPECT_NEAR(clipped[i] * norm(free), free[i] * 0.25, 1e-5);
}

TEST(OwnLoss, IsAddedToTheTermsThatThereAre) {
  LossSpec both = energy_and_force();
  both.terms = {LossTerm{.kind = LossKind::l1, .output = "energy", .target = "energy_target"}};
  const LossSpec l1{both.terms};
  const std::vector<Tensor> targets{random_tensor(ElementType::f32, {4, 1}, 1),
                                    random_tensor(ElementType::f32, {4, 2}, 2)};
  // Both name energy_target: it is one input.
  EXPECT_NEAR(
      one_step(both, targets).outputs[0].at(0),
      one_step(l1, {targets[0]}).outputs[0].at(0) + one_step(energy_and_force(), targets).outputs[0].at(0),
      1e-6);
}

std::string error_of(const BuildLoss& own) {
  try {
    make_training_step(two_outputs(), {.terms = {}, .own = own}, {});
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OwnLoss, IsRefusedWithTheReason) {
  EXPECT_TRUE(contains(error_of([](LossPorts& ports) { return ports.output("enrgy"); }),
                       "the model has no such output (did you mean 'energy'?)"));
  EXPECT_TRUE(contains(error_of([](LossPorts& ports) { return ports.input("X"); }),
                       "the model has no such input (did you mean 'x'?)"));
  EXPECT_TRUE(contains(error_of([](LossPorts& ports) { return ports.output("energy"); }),
                       "a loss is one number, not f32[4,1]"));
  EXPECT_TRUE(contains(error_of([](LossPorts&) { return Var(); }), "a loss is missing"));
  EXPECT_TRUE(contains(error_of([](LossPorts& ports) {
                         return op::reduce_mean(ports.target("t", {ElementType::f32, {4}})) +
                                op::reduce_mean(ports.target("t", {ElementType::f32, {4, 1}}));
                       }),
                       "in one part of the loss and"));
}

}  // namespace
}  // namespace superstep::transform
