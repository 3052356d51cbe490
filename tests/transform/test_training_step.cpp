#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/base/error.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/product/quantization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/training/optimizer.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/border.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

// y = x w with x [4, 2] and w [2, 1]: the mean squared error is a quadratic of two parameters.
Graph linear_model() {
  Graph graph("linear");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f64, {4, 2});
  const Var w = b.state("w", Tensor::from<double>({2, 1}, {0.5, -1.0}));
  b.output("y", op::gemm(x, w));
  return graph;
}

const std::vector<double> xs = {1, 2, -1, 0.5, 0.25, -2, 3, 1}, ts = {1, -1, 0.5, 2};

struct Quadratic {
  // d/dw of mean (x w - t)^2.
  static std::array<double, 2> gradient(const std::array<double, 2>& w) {
    std::array<double, 2> g = {0, 0};
    for (std::size_t i = 0; i < 4; ++i) {
      const double error = xs[2 * i] * w[0] + xs[2 * i + 1] * w[1] - ts[i];
      for (std::size_t k = 0; k < 2; ++k) g[k] += 2 * error * xs[2 * i + k] / 4;
    }
    return g;
  }
  static double loss(const std::array<double, 2>& w) {
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += std::pow(xs[2 * i] * w[0] + xs[2 * i + 1] * w[1] - ts[i], 2);
    return sum / 4;
  }
};

// Runs steps of a training graph, its state carried along.
class Runner {
 public:
  explicit Runner(Graph graph) : graph_(verified(std::move(graph))) {}
  double step(std::vector<Tensor> data, float rate) {
    data.push_back(Tensor::scalar(rate));
    const op::Evaluation result = op::evaluate(graph_, data, states_);
    states_ = result.states;
    return result.outputs[0].at(0);
  }
  const Tensor& state(const std::string& name) const { return states_.at(name); }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  std::map<std::string, Tensor> states_;
};

constexpr float rate = 0.125f;
using Pair = std::array<double, 2>;

// Takes steps of the graph and of `by_hand`, which changes w and is given the gradient and the step from 1.
template <class ByHand>
void expect_same_steps(const OptimizerSpec& optimizer, ByHand by_hand) {
  Runner runner(make_training_step(linear_model(), {}, optimizer));
  std::array<double, 2> w = {0.5, -1.0};
  for (int t = 1; t <= 4; ++t) {
    const double loss =
        runner.step({Tensor::from<double>({4, 2}, xs), Tensor::from<double>({4, 1}, ts)}, rate);
    ASSERT_NEAR(loss, Quadratic::loss(w), 1e-12);
    const auto g = Quadratic::gradient(w);
    by_hand(w, g, t);
    for (int k = 0; k < 2; ++k)
      ASSERT_NEAR(runner.state("w").at(k), w[static_cast<std::size_t>(k)], 1e-12) << "step " << t;
  }
  EXPECT_EQ(runner.state("step").at(0), 4);
}

TEST(TrainingStep, Sgd) {
  expect_same_steps({.kind = OptimizerKind::sgd}, [](Pair& w, const Pair& g, int) {
    for (std::size_t k = 0; k < 2; ++k) w[k] -= rate * g[k];
  });
}

// y = x q with q what w is rounded to: the slope of q is taken for that of w, but where w is limited.
Graph rounded_model(double scale) {
  Graph graph("rounded");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f64, {4, 2});
  const Var w = b.state("w", Tensor::from<double>({2, 1}, {0.5, -1.0}));
  const Var step = b.scalar(ElementType::f64, scale), zero = b.constant(Tensor::scalar<std::int8_t>(0));
  b.output("y", op::gemm(x, op::dequantize_linear(op::quantize_linear(w, step, zero), step, zero)));
  return graph;
}

TEST(TrainingStep, WeightsThatAreRoundedMoveByTheSlopeOfWhatTheyAreRoundedTo) {
  for (const double scale : {0.3, 0.005}) {
    Runner runner(make_training_step(rounded_model(scale), {}, {.kind = OptimizerKind::sgd}));
    Pair w = {0.5, -1.0};
    int limited = 0;
    for (int t = 1; t <= 4; ++t) {
      Pair rounded{};
      for (std::size_t k = 0; k < 2; ++k)
        rounded[k] = scale * std::clamp(std::nearbyint(w[k] / scale), -128.0, 127.0);
      const double loss =
          runner.step({Tensor::from<double>({4, 2}, xs), Tensor::from<double>({4, 1}, ts)}, rate);
      ASSERT_NEAR(loss, Quadratic::loss(rounded), 1e-6);
      const auto g = Quadratic::gradient(rounded);
      for (std::size_t k = 0; k < 2; ++k) {
        const bool within = std::abs(w[k] - rounded[k]) <= scale / 2;
        limited += within ? 0 : 1;
        if (within) w[k] -= rate * g[k];
        ASSERT_NEAR(runner.state("w").at(static_cast<std::int64_t>(k)), w[k], 1e-6) << "step " << t;
      }
    }
    EXPECT_EQ(limited > 0, scale < 0.1);
  }
}

TEST(TrainingStep, SgdWithMomentumAndWeightDecay) {
  Pair v = {0, 0};
  expect_same_steps({.kind = OptimizerKind::sgd, .momentum = 0.5, .weight_decay = 0.25},
                    [&](Pair& w, const Pair& g, int) {
                      for (std::size_t k = 0; k < 2; ++k) {
                        v[k] = 0.5 * v[k] + g[k] + 0.25 * w[k];
                        w[k] -= rate * v[k];
                      }
                    });
}

TEST(TrainingStep, SgdOfNesterov) {
  Pair v = {0, 0};
  expect_same_steps({.kind = OptimizerKind::sgd, .momentum = 0.5, .nesterov = true},
                    [&](Pair& w, const Pair& g, int) {
                      for (std::size_t k = 0; k < 2; ++k) {
                        v[k] = 0.5 * v[k] + g[k];
                        w[k] -= rate * (g[k] + 0.5 * v[k]);
                      }
                    });
}

struct AdamByHand {
  double coupled = 0, decoupled = 0;
  Pair m = {0, 0}, v = {0, 0};
  void operator()(Pair& w, const Pair& gradient, int t) {
    for (std::size_t k = 0; k < 2; ++k) {
      const double g = gradient[k] + coupled * w[k];
      m[k] = 0.9 * m[k] + 0.1 * g;
      v[k] = 0.999 * v[k] + 0.001 * g * g;
      const double direction =
          m[k] / (1 - std::pow(0.9, t)) / (std::sqrt(v[k] / (1 - std::pow(0.999, t))) + 1e-8);
      w[k] -= rate * (direction + decoupled * w[k]);
    }
  }
};

TEST(TrainingStep, Adam) { expect_same_steps({.kind = OptimizerKind::adam}, AdamByHand{}); }

TEST(TrainingStep, AdamWithWeightDecay) {
  expect_same_steps({.kind = OptimizerKind::adam, .weight_decay = 0.25}, AdamByHand{.coupled = 0.25});
}

TEST(TrainingStep, AdamW) {
  expect_same_steps({.kind = OptimizerKind::adamw, .weight_decay = 0.25}, AdamByHand{.decoupled = 0.25});
}

// The comparison above would see a wrong decay.
TEST(TrainingStep, AdamAndAdamWDiffer) {
  const OptimizerSpec adam{.kind = OptimizerKind::adam, .weight_decay = 0.25};
  const OptimizerSpec adamw{.kind = OptimizerKind::adamw, .weight_decay = 0.25};
  Runner a(make_training_step(linear_model(), {}, adam)), b(make_training_step(linear_model(), {}, adamw));
  const std::vector<Tensor> data = {Tensor::from<double>({4, 2}, xs), Tensor::from<double>({4, 1}, ts)};
  a.step(data, rate), b.step(data, rate);
  EXPECT_GT(std::abs(a.state("w").at(0) - b.state("w").at(0)), 1e-6);
}

TEST(TrainingStep, Adamax) {
  Pair m = {0, 0}, u = {0, 0};
  expect_same_steps({.kind = OptimizerKind::adamax, .weight_decay = 0.25},
                    [&](Pair& w, const Pair& gradient, int t) {
                      for (std::size_t k = 0; k < 2; ++k) {
                        const double g = gradient[k] + 0.25 * w[k];
                        m[k] = 0.9 * m[k] + 0.1 * g;
                        u[k] = std::max(0.999 * u[k], std::abs(g) + 1e-8);
                        w[k] -= rate / (1 - std::pow(0.9, t)) * m[k] / u[k];
                      }
                    });
}

TEST(TrainingStep, Lamb) {
  Pair m = {0, 0}, v = {0, 0};
  OptimizerSpec optimizer = usual_optimizer(OptimizerKind::lamb);
  optimizer.weight_decay = 0.25;
  expect_same_steps(optimizer, [&](Pair& w, const Pair& g, int t) {
    Pair r = {0, 0};
    for (std::size_t k = 0; k < 2; ++k) {
      m[k] = 0.9 * m[k] + 0.1 * g[k];
      v[k] = 0.999 * v[k] + 0.001 * g[k] * g[k];
      r[k] =
          m[k] / (1 - std::pow(0.9, t)) / (std::sqrt(v[k] / (1 - std::pow(0.999, t))) + 1e-6) + 0.25 * w[k];
    }
    const double ratio = std::hypot(w[0], w[1]) / std::hypot(r[0], r[1]);
    for (std::size_t k = 0; k < 2; ++k) w[k] -= rate * ratio * r[k];
  });
}

TEST(TrainingStep, RmspropWithMomentum) {
  OptimizerSpec optimizer = usual_optimizer(OptimizerKind::rmsprop);
  optimizer.momentum = 0.5;
  Pair v = {1, 1}, b = {0, 0};
  expect_same_steps(optimizer, [&](Pair& w, const Pair& g, int) {
    for (std::size_t k = 0; k < 2; ++k) {
      v[k] = 0.9 * v[k] + 0.1 * g[k] * g[k];
      b[k] = 0.5 * b[k] + rate * g[k] / std::sqrt(v[k] + 1e-3);
      w[k] -= b[k];
    }
  });
}

TEST(TrainingStep, RmspropWithoutMomentum) {
  Pair v = {1, 1};
  expect_same_steps(usual_optimizer(OptimizerKind::rmsprop), [&](Pair& w, const Pair& g, int) {
    for (std::size_t k = 0; k < 2; ++k) {
      v[k] = 0.9 * v[k] + 0.1 * g[k] * g[k];
      w[k] -= rate * g[k] / std::sqrt(v[k] + 1e-3);
    }
  });
}

// --- the interface of the graph

Graph small_network(std::int64_t batch, bool with_dropout = false) {
  Graph graph("net");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {batch, 3});
  const Var weight = b.state("fc1.weight", random_tensor(ElementType::f32, {3, 8}, 1));
  const Var bias = b.state("fc1.bias", Tensor(ElementType::f32, {8}));
  Var h = op::tanh(op::gemm(x, weight, bias));
  if (with_dropout) h = b.node1("Dropout", {h, b.scalar(ElementType::f32, 0.25)});
  b.output("scores", op::gemm(h, b.state("fc2.weight", random_tensor(ElementType::f32, {8, 4}, 2))));
  return graph;
}

std::vector<std::string> names(const Graph& graph, std::span<const graph::ValueId> ids) {
  std::vector<std::string> result;
  for (graph::ValueId id : ids) result.push_back(graph.value(id).name);
  return result;
}

const LossSpec cross_entropy{{LossTerm{.kind = LossKind::cross_entropy, .target = "label"}}};

TEST(TrainingStep, HasTheNamesThatCheckpointsRelyOn) {
  const Graph step = verified(make_training_step(small_network(5), cross_entropy, {}));
  EXPECT_EQ(step.name(), "net.training");
  EXPECT_EQ(names(step, step.inputs()), (std::vector<std::string>{"x", "label", "learning_rate"}));
  EXPECT_EQ(names(step, step.states()),
            (std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.weight", "step", "adam.m/fc1.weight",
                                      "adam.v/fc1.weight", "adam.m/fc1.bias", "adam.v/fc1.bias",
                                      "adam.m/fc2.weight", "adam.v/fc2.weight"}));
  EXPECT_EQ(step.type(step.find_value("label")), (graph::ValueType{ElementType::i64, {5}}));
  ASSERT_EQ(step.outputs().size(), 1u);
  EXPECT_EQ(step.outputs()[0].name, "loss");
}

TEST(TrainingStep, KeepsNoBufferWithoutMomentum) {
  const Graph step = make_training_step(linear_model(), {}, usual_optimizer(OptimizerKind::rmsprop));
  EXPECT_EQ(names(step, step.states()), (std::vector<std::string>{"w", "step", "rmsprop.v/w"}));
}

// Biases and scales are left as they are; matrices are not.
TEST(TrainingStep, OptimisersAreReadWithTheirConstants) {
  const OptimizerSpec sgd = optimizer_from_text("sgd:momentum=0.9,weight_decay=1e-4");
  EXPECT_EQ(sgd.kind, OptimizerKind::sgd);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.weight_decay, 1e-4);
  const OptimizerSpec own{.kind = OptimizerKind::adam, .beta2 = 0.95, .weight_decay = 0.1, .clip = 1};
  EXPECT_EQ(optimizer_from_text("adam", own).beta2, 0.95);
  EXPECT_EQ(optimizer_from_text("adam:beta2=0.5", own).beta2, 0.5);
  const OptimizerSpec other = optimizer_from_text("adamw:epsilon=1e-6", own);
  EXPECT_EQ(other.beta2, 0.999);
  EXPECT_EQ(other.epsilon, 1e-6);
  EXPECT_EQ(other.weight_decay, 0.1);
  EXPECT_EQ(other.clip, 1);
}

TEST(TrainingStep, RefusesConstantsThatAnOptimiserHasNot) {
  const auto refused = [](const char* text) -> std::string {
    try {
      optimizer_from_text(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "taken";
  };
  EXPECT_NE(refused("adamw:momentum=0.9").find("adamw has no constant 'momentum'"), std::string::npos);
  EXPECT_NE(refused("sgd:momentun=0.9").find("did you mean 'momentum'"), std::string::npos);
  EXPECT_NE(refused("sgd:momentum=1").find("momentum must be"), std::string::npos);
  EXPECT_NE(refused("adam:epsilon=0").find("epsilon must be"), std::string::npos);
  EXPECT_NE(refused("adam:weight_decay").find("is no NAME=VALUE"), std::string::npos);
  EXPECT_NE(refused("sgd:").find("is no NAME=VALUE"), std::string::npos);
  EXPECT_NE(refused("lion:beta1=0.9").find("no such optimizer"), std::string::npos);
}

TEST(TrainingStep, DecaysMatricesAlone) {
  const auto decays = [](bool vectors) {
    const Graph step = make_training_step(
        small_network(5), cross_entropy,
        {.kind = OptimizerKind::sgd, .momentum = 0.9, .weight_decay = 0.25, .decay_vectors = vectors});
    std::map<std::string, double> found;
    for (const graph::Node& node : step.nodes())
      if (node.op == "superstep.Sgd")
        found[step.value(node.inputs[0]).name] = node.attributes.number("weight_decay", 0);
    return found;
  };
  EXPECT_EQ(decays(false),
            (std::map<std::string, double>{{"fc1.weight", 0.25}, {"fc1.bias", 0}, {"fc2.weight", 0.25}}));
  EXPECT_EQ(decays(true),
            (std::map<std::string, double>{{"fc1.weight", 0.25}, {"fc1.bias", 0.25}, {"fc2.weight", 0.25}}));
}

// Biases and scales begin at zero or one: the length of their step is no share of that.
TEST(TrainingStep, LambLeavesVectorsOutOfItsRatio) {
  const Graph step =
      make_training_step(small_network(5), cross_entropy, usual_optimizer(OptimizerKind::lamb));
  std::map<std::string, std::string> by;
  for (const graph::Node& node : step.nodes())
    if (node.op == "superstep.Lamb" || node.op == "superstep.Adam")
      by[step.value(node.inputs[0]).name] = node.op;
  EXPECT_EQ(by, (std::map<std::string, std::string>{{"fc1.weight", "superstep.Lamb"},
                                                    {"fc1.bias", "superstep.Adam"},
                                                    {"fc2.weight", "superstep.Lamb"}}));
  EXPECT_TRUE(op::is_optimizer_state("lamb.m/fc1.weight"));
}

// The average forgets how it began: it takes nine tenths of the first step, then less and less, to 1 - d.
TEST(TrainingStep, KeepsAveragesBesideParameters) {
  Runner runner(make_training_step(linear_model(), {}, {.kind = OptimizerKind::sgd}, {.average = 0.75}));
  std::array<double, 2> w = {0.5, -1.0}, average = w;
  for (int t = 0; t < 40; ++t) {
    runner.step({Tensor::from<double>({4, 2}, xs), Tensor::from<double>({4, 1}, ts)}, rate);
    const auto g = Quadratic::gradient(w);
    const double kept = std::min(0.75, (1.0 + t) / (10.0 + t));
    for (std::size_t k = 0; k < 2; ++k) {
      w[k] -= rate * g[k];
      average[k] = kept * average[k] + (1 - kept) * w[k];
      ASSERT_NEAR(runner.state("w").at(static_cast<std::int64_t>(k)), w[k], 1e-12) << t;
      ASSERT_NEAR(runner.state("average/w").at(static_cast<std::int64_t>(k)), average[k], 1e-12) << t;
    }
  }
  EXPECT_EQ(names(runner.graph(), runner.graph().states()),
            (std::vector<std::string>{"w", "step", "average/w"}));
}

TEST(TrainingStep, GivesModelOutputsOnRequest) {
  const Graph step = make_training_step(small_network(5), cross_entropy, {}, {.model_outputs = true});
  ASSERT_EQ(step.outputs().size(), 2u);
  EXPECT_EQ(step.outputs()[1].name, "scores");
}

TEST(TrainingStep, OnlyGradientsPassTheBorder) {
  const Graph step = make_training_step(small_network(5), cross_entropy, {});
  const std::vector<bool> gradients = gradient_values(step);
  EXPECT_EQ(std::ranges::count(gradients, true), 3);
  for (const graph::Node& node : step.nodes())
    if (node.phase == graph::Phase::update)
      for (graph::ValueId input : node.inputs) {
        const graph::Value& value = step.value(input);
        const bool from_forward = value.kind == graph::ValueKind::computed &&
                                  step.node(value.producer).phase == graph::Phase::forward;
        EXPECT_FALSE(from_forward) << value.name;
      }
}

TEST(TrainingStep, AGradientThatIsAForwardValueGetsANodeOfItsOwn) {
  // d/dw of sum-like loss |x w - t| far from 0 is x itself up to sign; here d/db of mean(b) is a constant.
  Graph model;
  Builder b(model);
  b.input("x", ElementType::f32, {1});
  const Var bias = b.state("b", Tensor::from<float>({}, {1}));
  b.output("y", bias);
  const Graph step =
      make_training_step(model, {{LossTerm{.kind = LossKind::l1}}}, {.kind = OptimizerKind::sgd});
  EXPECT_EQ(std::ranges::count(gradient_values(step), true), 1);
}

TEST(TrainingStep, KeepsTheBorderThroughThePipeline) {
  Graph step = make_training_step(small_network(5, true), cross_entropy, {});
  const Graph before = step;
  run_pipeline(step, standard_passes());
  EXPECT_LT(step.node_count(), before.node_count());
  EXPECT_EQ(std::ranges::count(gradient_values(step), true), 3);
  const auto inputs = random_inputs(before);
  const auto a = op::evaluate(before, inputs), b = op::evaluate(step, inputs);
  for (const auto& [name, tensor] : a.states) expect_close(tensor, b.states.at(name), 1e-6, name);
}

TEST(TrainingStep, LearnsLabels) {
  Runner runner(make_training_step(small_network(8), cross_entropy, {}));
  Tensor x = random_tensor(ElementType::f32, {8, 3}, 5), label(ElementType::i64, {8});
  for (std::int64_t i = 0; i < 8; ++i) label.set(i, static_cast<double>(i % 4));
  const double first = runner.step({x, label}, 0.05f);
  double last = first;
  for (int i = 0; i < 80; ++i) last = runner.step({x, label}, 0.05f);
  EXPECT_LT(last, 0.3 * first);
}

// --- micro-batches

TEST(TrainingStep, PartsOfABatchAverageToTheWhole) {
  const OptimizerSpec sgd{.kind = OptimizerKind::sgd};
  Runner whole(make_training_step(small_network(8), cross_entropy, sgd));
  const Tensor x = random_tensor(ElementType::f32, {8, 3}, 5),
               label = random_tensor(ElementType::i64, {8}, 6);
  whole.step({x, label}, 0.5f);
  // Under plain SGD the average of the parameters after each part is the step of the averaged gradient.
  std::vector<double> average(24, 0);
  for (int part = 0; part < 2; ++part) {
    Runner half(make_training_step(small_network(4), cross_entropy, sgd));
    Tensor half_x(ElementType::f32, {4, 3}), half_label(ElementType::i64, {4});
    for (std::int64_t i = 0; i < 12; ++i) half_x.set(i, x.at(12 * part + i));
    for (std::int64_t i = 0; i < 4; ++i) half_label.set(i, label.at(4 * part + i));
    half.step({half_x, half_label}, 0.5f);
    for (std::size_t i = 0; i < 24; ++i)
      average[i] += half.state("fc1.weight").at(static_cast<std::int64_t>(i)) / 2;
  }
  for (std::size_t i = 0; i < 24; ++i)
    EXPECT_NEAR(average[i], whole.state("fc1.weight").at(static_cast<std::int64_t>(i)), 1e-6);
}

// --- dropout and normalisation

TEST(TrainingStep, DropsOutAnewEachStepAndTheSameForTheSameSeed) {
  const TrainingStepOptions seeded{.seed = 3};
  const OptimizerSpec still{.kind = OptimizerKind::sgd};  // with learning rate 0 only the masks change
  Runner a(make_training_step(small_network(8, true), cross_entropy, still, seeded));
  Runner b(make_training_step(small_network(8, true), cross_entropy, still, seeded));
  Runner c(make_training_step(small_network(8, true), cross_entropy, still, {.seed = 4}));
  const Tensor x = random_tensor(ElementType::f32, {8, 3}, 5),
               label = random_tensor(ElementType::i64, {8}, 6);
  const double first = a.step({x, label}, 0), second = a.step({x, label}, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(b.step({x, label}, 0), first);
  EXPECT_NE(c.step({x, label}, 0), first);
  EXPECT_EQ(a.state("dropout.counter").at(0), 16);
}

// x [N, 2, 3] of ones and what a branch adds to it, dropped for whole samples.
Graph branched_model(std::int64_t batch, double ratio) {
  Graph graph("branched");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f64, {batch, 2, 3});
  b.output("y", x + op::stochastic_depth(x * b.state("a", Tensor::scalar<double>(1)), ratio));
  return graph;
}

TEST(TrainingStep, DropsWholeSamplesOfABranch) {
  constexpr std::int64_t batch = 2000;
  const Graph model = branched_model(batch, 0.25);
  const std::vector<double> ones(static_cast<std::size_t>(batch) * 6, 1);
  const Tensor x = Tensor::from<double>({batch, 2, 3}, ones);
  const Tensor served = op::evaluate(verified(model), std::vector{x}).outputs[0];
  for (std::int64_t i = 0; i < served.element_count(); ++i) ASSERT_EQ(served.at(i), 2);
  const Graph step = make_training_step(model, {}, {.kind = OptimizerKind::sgd}, {.model_outputs = true});
  const op::Evaluation found = op::evaluate(verified(step), std::vector{x, x, Tensor::scalar(0.0f)});
  const Tensor& y = found.outputs[1];
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < batch; ++i) {
    kept += y.at(6 * i) > 1;
    for (std::int64_t k = 0; k < 6; ++k)
      ASSERT_NEAR(y.at(6 * i + k), y.at(6 * i) > 1 ? 1 + 1 / 0.75 : 1, 1e-12);
  }
  // Binomial: 1500 +- 19.
  EXPECT_NEAR(static_cast<double>(kept), 1500, 80);
  EXPECT_EQ(found.states.at("dropout.counter").at(0), batch);
}

TEST(TrainingStep, NormalisesByTheBatchAndKeepsRunningStatistics) {
  Graph model;
  Builder b(model);
  const Var x = b.input("x", ElementType::f64, {4, 2});
  const Var one = b.state("scale", Tensor::full(ElementType::f64, {2}, 1)),
            zero = b.state("bias", Tensor(ElementType::f64, {2}));
  const Var mean = b.state("mean", Tensor(ElementType::f64, {2})),
            variance = b.state("variance", Tensor::full(ElementType::f64, {2}, 1));
  const Var in[] = {x, one, zero, mean, variance};
  b.output("y", b.node("BatchNormalization", in, {{"epsilon", 0.0}})[0]);
  Runner runner(make_training_step(model, {}, {.kind = OptimizerKind::sgd}));
  const double loss = runner.step({Tensor::from<double>({4, 2}, xs), Tensor(ElementType::f64, {4, 2})}, 0);
  EXPECT_NEAR(loss, 1, 1e-12);  // normalised values have variance 1
  EXPECT_NEAR(runner.state("mean").at(0), 0.1 * (1 - 1 + 0.25 + 3) / 4, 1e-12);
  EXPECT_EQ(names(runner.graph(), runner.graph().states()).size(), 5u);  // and no moments
  EXPECT_FALSE(runner.graph().find_value("adam.m/mean").valid());
}

// --- losses

double loss_of(LossTerm term, const std::vector<double>& y, const std::vector<double>& t) {
  Graph graph;
  Builder b(graph);
  const auto n = static_cast<std::int64_t>(y.size());
  b.output("loss", build_loss(term, b.constant(Tensor::from({n}, y)), b.constant(Tensor::from({n}, t))));
  return op::evaluate(verified(graph), {}).outputs[0].at(0);
}

TEST(Loss, HasItsDefinition) {
  const std::vector<double> y = {1, 2, 5, 0}, t = {1, 2.5, 2, 0.1};
  EXPECT_NEAR(loss_of({.kind = LossKind::mse}, y, t), (0.25 + 9 + 0.01) / 4, 1e-15);
  EXPECT_NEAR(loss_of({.kind = LossKind::l1}, y, t), (0.5 + 3 + 0.1) / 4, 1e-15);
  EXPECT_NEAR(loss_of({.kind = LossKind::huber}, y, t), (0.125 + 2.5 + 0.005) / 4, 1e-15);
  EXPECT_NEAR(loss_of({.kind = LossKind::huber, .delta = 0.25}, y, t),
              (0.25 * (0.5 - 0.125) + 0.25 * (3 - 0.125) + 0.005) / 4, 1e-15);
}

TEST(Loss, CrossEntropyOfEqualScoresIsLogOfTheirNumber) {
  Graph graph;
  Builder b(graph);
  const Var scores = b.constant(Tensor(ElementType::f64, {3, 10}));
  b.output("loss", build_loss({.kind = LossKind::cross_entropy}, scores,
                              b.constant(Tensor::from<std::int64_t>({3}, {0, 4, 9}))));
  EXPECT_NEAR(op::evaluate(verified(graph), {}).outputs[0].at(0), std::log(10.0), 1e-12);
}

// Scores [1, 3] and label 1 of a cross entropy smoothed by a share, in f64.
double smoothed_loss(const std::vector<double>& scores, double share) {
  Graph graph;
  Builder b(graph);
  b.output("loss", build_loss({.kind = LossKind::cross_entropy, .smoothing = share},
                              b.constant(Tensor::from<double>({1, 3}, scores)),
                              b.constant(Tensor::from<std::int64_t>({1}, {1}))));
  return op::evaluate(verified(graph), {}).outputs[0].at(0);
}

// It is least where the scores are the logarithms of the smoothed target, and there it is that one's entropy.
TEST(Loss, SmoothedLabelsHaveTheEntropyOfTheirTarget) {
  const double other = 0.3 / 3, own = 0.7 + other;
  const std::vector<double> best = {std::log(other), std::log(own), std::log(other)};
  const double entropy = -own * std::log(own) - 2 * other * std::log(other);
  EXPECT_NEAR(smoothed_loss(best, 0.3), entropy, 1e-12);
  for (std::size_t i = 0; i < 3; ++i)
    for (const double step : {-0.01, 0.01}) {
      std::vector<double> beside = best;
      beside[i] += step;
      EXPECT_GT(smoothed_loss(beside, 0.3), entropy);
    }
  const std::vector<double> any = {0.5, -1, 2};
  const double total = std::log(std::exp(0.5) + std::exp(-1.0) + std::exp(2.0));
  EXPECT_NEAR(smoothed_loss(any, 0), total + 1, 1e-12);
  EXPECT_NEAR(smoothed_loss(any, 0.3), 0.7 * (total + 1) + 0.3 * (total - 0.5), 1e-12);
}

TEST(Loss, AddsWeightedTerms) {
  Graph model;
  Builder b(model);
  const Var x = b.input("x", ElementType::f64, {2});
  b.output("amplitude", x * b.state("a", Tensor::scalar<double>(1)));
  b.output("phase", x * b.state("p", Tensor::scalar<double>(1)));
  const LossSpec loss{{LossTerm{.kind = LossKind::l1, .output = "amplitude", .target = "A"},
                       LossTerm{.kind = LossKind::mse, .output = "phase", .target = "P", .weight = 2}}};
  Runner runner(make_training_step(model, loss, {.kind = OptimizerKind::sgd}));
  const auto pair = [](double a, double c) { return Tensor::from<double>({2}, {a, c}); };
  EXPECT_NEAR(runner.step({pair(1, 2), pair(0, 0), pair(2, 2)}, 0), 1.5 + 2 * 0.5, 1e-15);
}

// --- refusals

std::string error_of(const Graph& model, const LossSpec& loss, const TrainingStepOptions& options = {}) {
  try {
    make_training_step(model, loss, {}, options);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(TrainingStep, RefusesWithTheReason) {
  const Graph model = small_network(4);
  EXPECT_TRUE(contains(error_of(model, {{LossTerm{.output = "score"}}}),
                       "score: the model has no such output (did you mean 'scores'?)"));
  EXPECT_TRUE(contains(error_of(model, {{LossTerm{.target = "x"}}}),
                       "x: the model has a value of a name that the training step needs"));
  EXPECT_TRUE(contains(error_of(model, {{}}), "the loss has no terms"));
  EXPECT_TRUE(contains(error_of(model, {}, {.frozen = {"fc1.weigt"}}),
                       "there is no such parameter to freeze (did you mean 'fc1.weight'?)"));
  EXPECT_TRUE(contains(error_of(model, {}, {.frozen = {"fc1.weight", "fc1.bias", "fc2.weight"}}),
                       "the loss depends on no parameter"));
}

TEST(TrainingStep, RefusesALossOnOneOfSeveralOutputsThatDoesNotSayWhich) {
  Graph model;
  Builder b(model);
  const Var w = b.state("w", Tensor::scalar<float>(1));
  b.output("a", w), b.output("b", w);
  EXPECT_TRUE(contains(error_of(model, {}), "must say which (there are: a, b)"));
}

// mean (x w - t)^2 of four samples, computed by the model: a row for each, their mean, or their sum.
Graph model_with_its_loss(const std::string& reduction) {
  Graph graph("own");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f64, {4, 2}), t = b.input("t", ElementType::f64, {4, 1});
  const Var w = b.state("w", Tensor::from<double>({2, 1}, {0.5, -1.0}));
  const Var away = op::gemm(x, w) - t, squares = away * away;
  b.output("loss", reduction == "none"   ? squares
                   : reduction == "mean" ? op::reduce_mean(squares)
                                         : op::reduce_sum(squares));
  return graph;
}

const LossSpec own_value{{LossTerm{.kind = LossKind::value}}};

TEST(TrainingStep, AnOutputMayBeTheLoss) {
  const std::vector<Tensor> data = {Tensor::from<double>({4, 2}, xs), Tensor::from<double>({4, 1}, ts)};
  for (const char* reduction : {"none", "mean", "sum"}) {
    Graph model = model_with_its_loss(reduction);
    Runner runner(make_training_step(model, own_value, {.kind = OptimizerKind::sgd}));
    const double times = std::string(reduction) == "sum" ? 4 : 1;
    Pair w = {0.5, -1.0};
    EXPECT_NEAR(runner.step(data, rate / 4), times * Quadratic::loss(w), 1e-12) << reduction;
    const Pair g = Quadratic::gradient(w);
    for (int k = 0; k < 2; ++k)
      EXPECT_NEAR(runner.state("w").at(k),
                  w[static_cast<std::size_t>(k)] - rate / 4 * times * g[static_cast<std::size_t>(k)], 1e-7)
          << reduction;
  }
}

// What is one number for a batch may be a sum: the mean over parts of the batch would be another number.
TEST(TrainingStep, OnlyALossOfEachSampleMayBeSplit) {
  const auto step = [](const char* reduction) {
    return make_training_step(model_with_its_loss(reduction), own_value, {.kind = OptimizerKind::sgd});
  };
  EXPECT_TRUE(splittable(step("none")).has_value());
  for (const char* whole : {"mean", "sum"}) {
    const Status split = splittable(step(whole));
    ASSERT_FALSE(split.has_value()) << whole;
    EXPECT_TRUE(contains(split.error().what(), "is a loss of the whole batch"));
  }
}

TEST(TrainingStep, AnOutputThatIsALossIsAFloatingPointNumber) {
  Graph model;
  Builder b(model);
  b.output("count", b.input("n", ElementType::i64, {4}));
  EXPECT_TRUE(contains(error_of(model, own_value), "the only output: a loss is a floating-point number"));
}

// The gradient alone is what plain descent takes away.
TEST(TrainingStep, GradientsWithoutAnOptimizer) {
  const Graph step = verified(make_gradient_step(linear_model(), {}));
  ASSERT_EQ(step.outputs().size(), 3U);
  EXPECT_EQ(step.outputs()[0].name, "loss");
  EXPECT_EQ(step.outputs()[1].name, "y");
  EXPECT_EQ(step.outputs()[2].name, "gradient/w");
  const op::Evaluation found = op::evaluate(
      step, std::vector<Tensor>{Tensor::from<double>({4, 2}, xs), Tensor::from<double>({4, 1}, ts)}, {});
  const Pair w = {0.5, -1.0}, g = Quadratic::gradient(w);
  EXPECT_NEAR(found.outputs[0].at(0), Quadratic::loss(w), 1e-12);
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(found.outputs[2].at(k), g[static_cast<std::size_t>(k)], 1e-12);
  EXPECT_EQ(found.states.at("w").at(0), 0.5) << "nothing is learnt";
  EXPECT_TRUE(splittable(step).has_value());
}

TEST(TrainingStep, GradientsDrawMasksAndCountSamples) {
  Graph model("drops");
  Builder b(model);
  const Var x = b.input("x", ElementType::f64, {4, 2});
  const Var w = b.state("w", Tensor::from<double>({2, 1}, {0.5, -1.0}));
  b.output("y", op::gemm(b.node1("Dropout", {x, b.scalar(ElementType::f32, 0.5)}), w));
  const Graph step = verified(make_gradient_step(model, {}));
  const std::vector<Tensor> data = {Tensor::from<double>({4, 2}, xs), Tensor::from<double>({4, 1}, ts)};
  const op::Evaluation first = op::evaluate(step, data, {}), second = op::evaluate(step, data, first.states);
  EXPECT_EQ(first.states.at("dropout.counter").at(0), 4);
  EXPECT_NE(first.outputs[0].at(0), second.outputs[0].at(0)) << "another mask";
}

TEST(TrainingStep, GradientsAreOfTheReverseModeAlone) {
  const TrainingStepOptions estimated{.gradient = {.kind = GradientMode::Kind::forward}};
  EXPECT_THROW(make_gradient_step(linear_model(), {}, estimated), Error);
  EXPECT_THROW(make_gradient_step(linear_model(), {}, {.average = 0.9}), Error);
}

TEST(TrainingStep, FreezesParameters) {
  const Graph step = make_training_step(small_network(4), {}, {}, {.frozen = {"fc1.weight"}});
  EXPECT_FALSE(step.update_of(step.find_value("fc1.weight")).valid());
  EXPECT_TRUE(step.update_of(step.find_value("fc2.weight")).valid());
}

TEST(TrainingStep, NamesLossesAndOptimisers) {
  EXPECT_EQ(loss_kind_from_name("huber"), LossKind::huber);
  EXPECT_EQ(optimizer_kind_from_name("adamw"), OptimizerKind::adamw);
  EXPECT_STREQ(name_of(OptimizerKind::sgd), "sgd");
  try {
    optimizer_kind_from_name("adamx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "adamx: there is no such optimizer (did you mean 'adam'?)"));
  }
}

}  // namespace
}  // namespace superstep::transform
