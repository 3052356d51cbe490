#include <gtest/gtest.h>

#include <cmath>

#include "superstep/target/cpu/kernels/elementwise/optimizer.h"
#include "superstep/target/cpu/kernels/elementwise/wide_optimizer.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

// One parameter, in f64, by the formulas of optimizer.h.
struct Exact {
  double p, m = 0, v = 0;

  void step(const Optimizer& o, const OptimizerScalars& s, double gradient) {
    const double lr = s.learning_rate, wd = o.weight_decay, b1 = o.beta1, b2 = o.beta2, eps = o.epsilon;
    const double t = static_cast<double>(s.step);
    double g = gradient * static_cast<double>(s.gradient_scale);
    if (o.rule == OptimizerRule::adamw)
      p -= lr * wd * p;
    else
      g += wd * p;
    const double momentum = o.momentum;
    switch (o.rule) {
      case OptimizerRule::sgd:
        if (o.momentum == 0) {
          p -= lr * g;
          return;
        }
        m = s.step == 1 ? g : momentum * m + (1 - static_cast<double>(o.dampening)) * g;
        p -= lr * (o.nesterov ? g + momentum * m : m);
        return;
      case OptimizerRule::adam:
      case OptimizerRule::adamw:
        m = b1 * m + (1 - b1) * g, v = b2 * v + (1 - b2) * g * g;
        p -= lr * (m / (1 - std::pow(b1, t))) / (std::sqrt(v / (1 - std::pow(b2, t))) + eps);
        return;
      case OptimizerRule::adamax:
        m = b1 * m + (1 - b1) * g, v = std::max(b2 * v, std::abs(g) + eps);
        p -= lr * m / ((1 - std::pow(b1, t)) * v);
        return;
      case OptimizerRule::rmsprop:
        v = b2 * v + (1 - b2) * g * g, m = momentum * m + lr * g / std::sqrt(v + eps), p -= m;
        return;
      case OptimizerRule::adagrad: v += g * g, p -= lr * g / (std::sqrt(v) + eps); return;
    }
  }
};

std::vector<Optimizer> all_optimizers() {
  std::vector<Optimizer> list;
  for (OptimizerRule rule : {OptimizerRule::sgd, OptimizerRule::adam, OptimizerRule::adamw,
                             OptimizerRule::adamax, OptimizerRule::rmsprop, OptimizerRule::adagrad})
    for (float decay : {0.0f, 0.1f}) list.push_back({.rule = rule, .weight_decay = decay});
  list.push_back({.momentum = 0.9f});
  list.push_back({.momentum = 0.9f, .dampening = 0.3f, .weight_decay = 0.05f});
  list.push_back({.momentum = 0.8f, .nesterov = true});
  list.push_back({.rule = OptimizerRule::rmsprop, .momentum = 0.9f, .beta2 = 0.9, .epsilon = 1e-3f});
  return list;
}

void check(Optimizer o, std::int64_t count, std::int64_t buffers, bool copy) {
  o.count = count, o.gradient_buffers = buffers, o.bf16_copy = copy;
  GuardedBuffer p(ElementType::f32, o.count), bf(ElementType::bf16, o.count);
  std::vector<GuardedBuffer> states, gradients;
  for (std::size_t i = 0; i < state_arrays(o); ++i) states.emplace_back(ElementType::f32, o.count);
  for (std::int64_t i = 0; i < buffers; ++i) gradients.emplace_back(ElementType::f32, o.count);
  p.fill_random(1);
  std::vector<Exact> exact;
  for (std::int64_t i = 0; i < o.count; ++i) exact.push_back({p.get(i)});
  OptimizerScalars scalars{0.01f, 0.5f, 1};
  const KernelPointer kernel = require_kernel(prepare(o));
  std::vector<const void*> inputs{&scalars};
  std::vector<void*> outputs{p.data()};
  for (auto& g : gradients) inputs.push_back(g.data());
  for (auto& s : states) outputs.push_back(s.data());
  if (copy) outputs.push_back(bf.data());
  for (; scalars.step <= 5; ++scalars.step) {
    for (std::size_t k = 0; k < gradients.size(); ++k)
      gradients[k].fill_random(static_cast<std::uint64_t>(scalars.step) * 10 + k);
    run_kernel(*kernel, inputs, outputs);
    for (std::int64_t i = 0; i < o.count; ++i) {
      double g = 0;
      for (auto& buffer : gradients) g += buffer.get(i);
      exact[static_cast<std::size_t>(i)].step(o, scalars, g);
      ASSERT_NEAR(exact[static_cast<std::size_t>(i)].p, p.get(i), 3e-6)
          << kernel->info().name << " step " << scalars.step;
      if (copy) {
        ASSERT_EQ(static_cast<float>(bf16(p.as<float>()[i])), static_cast<float>(bf.get(i)));
      }
    }
  }
}

TEST(Optimizer, follows_its_formulas) {
  for_each_instruction_set([] {
    for (const Optimizer& o : all_optimizers()) {
      check(o, 103, 1, false);
      check(o, 103, 3, true);
      for (const std::int64_t count : {1, 7, 8, 16, 31, 64}) check(o, count, 2, count % 2 == 0);
    }
  });
}

TEST(Optimizer, the_test_would_notice_a_wrong_rate) {
  Optimizer o{.rule = OptimizerRule::adam, .count = 1};
  float p = 1, m = 0, v = 0;
  const float g = 0.3f;
  const OptimizerScalars scalars{0.01f, 1, 1};
  run_kernel(*require_kernel(prepare(o)), {&scalars, &g}, {&p, &m, &v});
  Exact exact{1};
  OptimizerScalars wrong = scalars;
  wrong.learning_rate *= 1.001f;
  exact.step(o, wrong, 0.3);
  EXPECT_GT(std::abs(exact.p - static_cast<double>(p)), 3e-6);
}

TEST(Optimizer, gradient_norm_is_the_sum_of_squares) {
  for_each_instruction_set([] {
    for (const std::int64_t count : {1, 7, 16, 33, 10007}) {
      GuardedBuffer a(ElementType::f32, count), b(ElementType::f32, count);
      a.fill_random(1), b.fill_random(2);
      double exact = 0, norm = 0;
      for (std::int64_t i = 0; i < a.size(); ++i) exact += (a.get(i) + b.get(i)) * (a.get(i) + b.get(i));
      run_kernel(*require_kernel(prepare(GradientNorm{count, 2})), {a.data(), b.data()}, {&norm});
      EXPECT_NEAR(exact, norm, 1e-6 * exact) << count;
    }
  });
}

TEST(Optimizer, refuses_what_makes_no_sense) {
  EXPECT_EQ("there is no gradient", prepare(Optimizer{.count = 3, .gradient_buffers = 0}).error().reason);
  EXPECT_EQ("Nesterov's method needs a momentum and no dampening",
            prepare(Optimizer{.count = 3, .nesterov = true}).error().reason);
}

// ---- f64

std::vector<WideOptimizer> all_wide_optimizers() {
  std::vector<WideOptimizer> list;
  for (OptimizerRule rule : {OptimizerRule::sgd, OptimizerRule::adam, OptimizerRule::adamw,
                             OptimizerRule::adamax, OptimizerRule::rmsprop})
    for (double decay : {0.0, 0.1}) list.push_back({.rule = rule, .weight_decay = decay});
  list.push_back({.momentum = 0.9, .weight_decay = 0.05});
  list.push_back({.momentum = 0.8, .nesterov = true});
  list.push_back({.rule = OptimizerRule::rmsprop, .momentum = 0.9, .beta2 = 0.9, .epsilon = 1e-3});
  return list;
}

// One parameter by the formulas of op/training/optimizer.h, whose buffers begin at zero.
struct ExactWide {
  double p, m = 0, v = 0;

  void step(const WideOptimizer& o, double lr, std::int64_t t, double gradient) {
    const bool decoupled = o.rule == OptimizerRule::adamw;
    const double wd = o.weight_decay, g = gradient + (decoupled ? 0 : wd) * p;
    const double c1 = 1 - std::pow(o.beta1, t), c2 = 1 - std::pow(o.beta2, t);
    if (o.rule == OptimizerRule::sgd) {
      m = o.momentum * m + g;
      p -= lr * (o.nesterov ? g + o.momentum * m : m);
    } else if (o.rule == OptimizerRule::rmsprop) {
      v = o.beta2 * v + (1 - o.beta2) * g * g, m = o.momentum * m + lr * g / std::sqrt(v + o.epsilon);
      p -= m;
    } else if (o.rule == OptimizerRule::adamax) {
      m = o.beta1 * m + (1 - o.beta1) * g, v = std::max(o.beta2 * v, std::abs(g) + o.epsilon);
      p -= lr * m / (c1 * v);
    } else {
      m = o.beta1 * m + (1 - o.beta1) * g, v = o.beta2 * v + (1 - o.beta2) * g * g;
      p -= lr * (m / c1 / (std::sqrt(v / c2) + o.epsilon) + (decoupled ? wd : 0) * p);
    }
  }
};

// The largest distance from the formulas after five steps; `wrong` changes the rate that they see.
double distance_in_f64(WideOptimizer o, std::int64_t count, double wrong = 1) {
  o.count = count;
  GuardedBuffer p(ElementType::f64, count), g(o.gradient, count), rate(o.rate, 1);
  std::vector<GuardedBuffer> states;
  for (std::size_t i = 0; i < state_arrays(o); ++i) states.emplace_back(ElementType::f64, count);
  p.fill_random(1), rate.set(0, 0.01);
  std::vector<ExactWide> exact;
  for (std::int64_t i = 0; i < count; ++i) exact.push_back({p.get(i)});
  const KernelPointer kernel = require_kernel(prepare(o));
  std::int64_t step = 0;
  std::vector<const void*> inputs{rate.data(), g.data()};
  if (kernel->info().inputs == 3) inputs.push_back(&step);
  std::vector<void*> outputs{p.data()};
  for (auto& s : states) outputs.push_back(s.data());
  double apart = 0;
  for (; step < 5; ++step) {
    g.fill_random(static_cast<std::uint64_t>(step) + 3);
    run_kernel(*kernel, inputs, outputs);
    for (std::int64_t i = 0; i < count; ++i) {
      ExactWide& one = exact[static_cast<std::size_t>(i)];
      one.step(o, wrong * rate.get(0), step + 1, g.get(i));
      apart = std::max(apart, std::abs(one.p - p.get(i)));
    }
  }
  return apart;
}

TEST(OptimizerOfF64, FollowsItsFormulasToTheDigitsOfF64) {
  for (WideOptimizer o : all_wide_optimizers())
    for (const ElementType type : {ElementType::f32, ElementType::f64}) {
      o.gradient = o.rate = type;
      for (const std::int64_t count : {1, 7, 64, 103, 10007}) EXPECT_LE(distance_in_f64(o, count), 1e-14);
    }
}

TEST(OptimizerOfF64, TheTestWouldNoticeAWrongRate) {
  for (const WideOptimizer& o : all_wide_optimizers()) EXPECT_GT(distance_in_f64(o, 8, 1 + 1e-9), 1e-13);
}

TEST(OptimizerOfF64, RefusesWhatMakesNoSense) {
  EXPECT_EQ("there is no such rule in f64",
            prepare(WideOptimizer{.rule = OptimizerRule::adagrad}).error().reason);
  EXPECT_EQ("Nesterov's method needs a momentum", prepare(WideOptimizer{.nesterov = true}).error().reason);
  EXPECT_EQ("the gradient is not f32 or f64",
            prepare(WideOptimizer{.gradient = ElementType::bf16}).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
