// Every loss against its definition written out, its gradient against finite differences, and what users
// write.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "superstep/base/error.h"
#include "superstep/op/core/gradient_check.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/training/loss_text.h"
#include "superstep/transform/training/training_step.h"
#include "tests/expect_error.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

using Rows = std::vector<double>;

// 4 samples of 3 numbers: outputs, and targets in [0, 1].
Tensor outputs() { return random_tensor(ElementType::f64, {4, 3}, 1); }
Tensor shares(std::uint64_t seed, double low = 0.05, double high = 0.95) {
  Tensor tensor(ElementType::f64, {4, 3});
  RandomStream random(seed);
  for (std::int64_t i = 0; i < 12; ++i) tensor.set(i, random.uniform(low, high));
  return tensor;
}
Tensor labels(std::vector<std::int64_t> values = {0, 2, 1, 2}) {
  return Tensor::from<std::int64_t>({4}, values);
}
Tensor weights() { return Tensor::from<double>({4}, {1, 0, 2.5, 0.5}); }
Tensor mask() { return Tensor::from<double>({4, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0}); }

// Tensors by the names that a term gives them, in the order of build_loss.
struct Case {
  std::string text;
  Tensor output, target;
  Tensor variance = {}, sample_weights = {}, mask = {};
  Tensor positive = {}, negative = {};
};

op::Function function_of(const Case& each) {
  return [each](Builder& b, std::span<const Var> in) {
    const LossTerm term = loss_from_text(each.text).at(0);
    std::size_t next = 1;
    const auto given = [&](const Tensor& tensor, bool differentiable) {
      if (tensor.element_count() == 0) return Var();
      return differentiable ? in[next++] : b.constant(tensor);
    };
    LossExtras extras;
    extras.variance = given(each.variance, true);
    extras.positive = given(each.positive, true);
    extras.negative = given(each.negative, true);
    extras.sample_weights = given(each.sample_weights, false);
    extras.mask = given(each.mask, false);
    const Var target = needs_target(term.kind) ? b.constant(each.target) : Var();
    return std::vector{build_loss(term, in[0], target, extras)};
  };
}

std::vector<Tensor> points_of(const Case& each) {
  std::vector<Tensor> points{each.output};
  for (const Tensor& other : {each.variance, each.positive, each.negative})
    if (other.element_count() > 0) points.push_back(other);
  return points;
}

double value_of(const Case& each) {
  Graph graph;
  Builder b(graph);
  std::vector<Var> in;
  for (const Tensor& point : points_of(each)) in.push_back(b.constant(point));
  b.output("loss", function_of(each)(b, in)[0]);
  return op::evaluate(verified(graph), {}).outputs[0].at(0);
}

// The mean over all elements of f(y, t).
double mean_of(const Case& each, const std::function<double(double, double)>& f) {
  double sum = 0;
  for (std::int64_t i = 0; i < each.output.element_count(); ++i)
    sum += f(each.output.at(i), each.target.at(i));
  return sum / static_cast<double>(each.output.element_count());
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double bce(double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); }

TEST(Losses, OfNumbersAreTheirDefinitions) {
  const Case smooth{"smooth_l1(beta=0.5)", outputs(), shares(2)};
  EXPECT_NEAR(value_of(smooth),
              mean_of(smooth,
                      [](double y, double t) {
                        const double d = std::abs(y - t);
                        return d < 0.5 ? d * d : d - 0.25;
                      }),
              1e-12);
  const Case cosh{"log_cosh", outputs(), shares(2)};
  EXPECT_NEAR(value_of(cosh), mean_of(cosh, [](double y, double t) { return std::log(std::cosh(y - t)); }),
              1e-12);
  const Case poisson{"poisson_nll", outputs(), shares(3)};
  EXPECT_NEAR(value_of(poisson), mean_of(poisson, [](double y, double t) { return std::exp(y) - t * y; }),
              1e-12);
  Case gaussian{"gaussian_nll(variance=v):y", outputs(), shares(3)};
  gaussian.variance = shares(4, 0.2, 2);
  double sum = 0;
  for (std::int64_t i = 0; i < 12; ++i) {
    const double v = gaussian.variance.at(i), away = gaussian.output.at(i) - gaussian.target.at(i);
    sum += (std::log(v) + away * away / v) / 2;
  }
  EXPECT_NEAR(value_of(gaussian), sum / 12, 1e-12);
  Case far = cosh;  // log cosh of 2000 overflows where it is computed as it is written
  far.output = Tensor::full(ElementType::f64, {4, 3}, 2000), far.target = Tensor(ElementType::f64, {4, 3});
  EXPECT_NEAR(value_of(far), 2000 - std::log(2.0), 1e-9);
}

TEST(Losses, OfYesAndNoAreTheirDefinitions) {
  const Case plain{"bce", shares(5), shares(6)};
  EXPECT_NEAR(value_of(plain), mean_of(plain, bce), 1e-12);
  const Case logits{"bce_with_logits", outputs(), shares(6)};
  EXPECT_NEAR(value_of(logits), mean_of(logits, [](double y, double t) { return bce(sigmoid(y), t); }),
              1e-12);
  const Case rare{"bce_with_logits(positive_weight=3)", outputs(), shares(6)};
  EXPECT_NEAR(value_of(rare),
              mean_of(rare,
                      [](double y, double t) {
                        return -3 * t * std::log(sigmoid(y)) - (1 - t) * std::log(1 - sigmoid(y));
                      }),
              1e-12);
  const Case focal{"focal(gamma=1.5,alpha=0.75)", outputs(), shares(6)};
  EXPECT_NEAR(value_of(focal),
              mean_of(focal,
                      [](double y, double t) {
                        const double p = sigmoid(y), right = p * t + (1 - p) * (1 - t);
                        return (0.75 * t + 0.25 * (1 - t)) * std::pow(1 - right, 1.5) * bce(p, t);
                      }),
              1e-12);
  EXPECT_NEAR(value_of({"focal(gamma=0,alpha=-1)", outputs(), shares(6)}), value_of(logits), 1e-12);
  // Certain and wrong: 100 each, as PyTorch has it, and no infinity.
  EXPECT_EQ(value_of({"bce", Tensor(ElementType::f64, {4, 3}), Tensor::full(ElementType::f64, {4, 3}, 1)}),
            100);
  const Case overlap{"tversky(alpha=0.3,beta=0.7)", shares(5), shares(6)};
  double both = 0, invented = 0, missed = 0;
  for (std::int64_t i = 0; i < 12; ++i) {
    const double y = overlap.output.at(i), t = overlap.target.at(i);
    both += y * t, invented += y * (1 - t), missed += (1 - y) * t;
  }
  EXPECT_NEAR(value_of(overlap), 1 - (both + 1) / (both + 0.3 * invented + 0.7 * missed + 1), 1e-12);
}

// log softmax of the outputs' rows.
double log_softmax(const Tensor& scores, std::int64_t row, std::int64_t k) {
  double sum = 0;
  for (std::int64_t c = 0; c < 3; ++c) sum += std::exp(scores.at(row * 3 + c));
  return scores.at(row * 3 + k) - std::log(sum);
}

TEST(Losses, OfClassesAreTheirDefinitions) {
  const Tensor scores = outputs();
  const Rows table = {1, 4, 0.5};
  const std::vector<std::int64_t> own = {0, 2, 1, 2};
  double weighted = 0, all = 0, kept = 0;
  for (std::int64_t n = 0; n < 4; ++n) {
    const auto label = static_cast<std::size_t>(own[static_cast<std::size_t>(n)]);
    double spread = 0;
    for (std::int64_t c = 0; c < 3; ++c)
      spread -= table[static_cast<std::size_t>(c)] * log_softmax(scores, n, c) / 3;
    weighted += 0.9 * -table[label] * log_softmax(scores, n, static_cast<std::int64_t>(label)) + 0.1 * spread;
    all += table[label];
    if (label != 2) kept -= log_softmax(scores, n, static_cast<std::int64_t>(label)) / 2;
  }
  EXPECT_NEAR(value_of({"cross_entropy(class_weights=1:4:0.5,smoothing=0.1)", scores, labels()}),
              weighted / all, 1e-12);
  EXPECT_NEAR(value_of({"cross_entropy(ignore=2)", scores, labels()}), kept, 1e-12);
  EXPECT_NEAR(value_of({"cross_entropy(ignore=-100)", scores, labels({0, -100, 1, -100})}), kept, 1e-12);
  EXPECT_EQ(value_of({"cross_entropy(ignore=-100)", scores, labels({-100, -100, -100, -100})}), 0)
      << "no label counts";
  Tensor logarithms(ElementType::f64, {4, 3});
  for (std::int64_t i = 0; i < 12; ++i) logarithms.set(i, log_softmax(scores, i / 3, i % 3));
  EXPECT_NEAR(value_of({"nll", logarithms, labels()}), value_of({"cross_entropy", scores, labels()}), 1e-12);
}

TEST(Losses, OfDistributionsAndDirectionsAreTheirDefinitions) {
  Tensor truth = shares(7);
  truth.set(4, 0);  // 0 log 0
  const Case kl{"kl_div", outputs(), truth};
  double sum = 0, angles = 0;
  for (std::int64_t n = 0; n < 4; ++n) {
    double yt = 0, yy = 0, tt = 0;
    for (std::int64_t i = 3 * n; i < 3 * n + 3; ++i) {
      const double y = kl.output.at(i), t = truth.at(i);
      if (t > 0) sum += t * (std::log(t) - y);
      yt += y * t, yy += y * y, tt += t * t;
    }
    angles += 1 - yt / std::sqrt(yy * tt);
  }
  EXPECT_NEAR(value_of(kl), sum / 4, 1e-12);
  EXPECT_NEAR(value_of({"cosine", outputs(), truth}), angles / 4, 1e-12);
}

Case triplets(const std::string& constants) {
  Case each{"triplet_margin(positive=p,negative=n" + constants + ")", outputs(), {}};
  each.positive = shares(7), each.negative = shares(8, -1, 1);
  return each;
}

double distance(const Tensor& a, const Tensor& b, std::int64_t n, double p) {
  double sum = 0;
  for (std::int64_t i = 3 * n; i < 3 * n + 3; ++i) sum += std::pow(std::abs(a.at(i) - b.at(i) + 1e-6), p);
  return std::pow(sum, 1 / p);
}

TEST(Losses, OfTripletsAreTheirDefinition) {
  for (const double p : {1.0, 2.0, 3.0})
    for (const bool swap : {false, true}) {
      const Case each = triplets(fmt::format(",margin=0.4,p={},swap={}", p, swap));
      double sum = 0;
      int beyond = 0;
      for (std::int64_t n = 0; n < 4; ++n) {
        double far = distance(each.output, each.negative, n, p);
        if (swap) far = std::min(far, distance(each.positive, each.negative, n, p));
        const double above = distance(each.output, each.positive, n, p) - far + 0.4;
        sum += std::max(0.0, above), beyond += above < 0 ? 1 : 0;
      }
      EXPECT_NEAR(value_of(each), sum / 4, 1e-12) << each.text;
      EXPECT_LT(beyond, 4) << "there is something to compare";
    }
  // torch.nn.functional.triplet_margin_loss of PyTorch 2.15.
  const std::pair<const char*, double> published[] = {{"", 1.19539927303171},
                                                      {",margin=0.4,p=1", 1.23689155497007},
                                                      {",margin=2.5,p=3,swap=true", 2.88809329820674}};
  for (const auto& [constants, value] : published) {
    Case each = triplets(constants);
    for (std::int64_t i = 0; i < 12; ++i) {
      const auto k = static_cast<double>(i);
      each.output.set(i, std::cos(0.5 * k));
      each.positive.set(i, std::cos(0.9 * k)), each.negative.set(i, std::cos(1.3 * k));
    }
    EXPECT_NEAR(value_of(each), value, 1e-13) << constants;
  }
  Case apart = triplets(",margin=0.001");
  apart.positive = apart.output;
  EXPECT_EQ(value_of(apart), 0);
}

TEST(Losses, CountSamplesAndElementsAsTheyAreTold) {
  const Tensor y = outputs(), t = shares(8), w = weights(), m = mask();
  double weighted = 0, masked = 0, kept = 0;
  for (std::int64_t i = 0; i < 12; ++i) {
    const double square = std::pow(y.at(i) - t.at(i), 2);
    weighted += w.at(i / 3) * square / 12, masked += m.at(i) * square, kept += m.at(i);
  }
  EXPECT_NEAR(value_of({.text = "mse(sample_weights=w)",
                        .output = y,
                        .target = t,
                        .variance = {},
                        .sample_weights = w,
                        .mask = {}}),
              weighted, 1e-12);
  EXPECT_NEAR(
      value_of(
          {.text = "mse(mask=m)", .output = y, .target = t, .variance = {}, .sample_weights = {}, .mask = m}),
      masked / kept, 1e-12);
  EXPECT_EQ(value_of({.text = "mse(mask=m)",
                      .output = y,
                      .target = t,
                      .variance = {},
                      .sample_weights = {},
                      .mask = Tensor(ElementType::f64, {4, 3})}),
            0);
}

std::vector<Case> differentiated() {
  const Tensor y = outputs(), p = shares(5), t = shares(6), w = weights(), m = mask();
  std::vector<Case> cases = {{"huber(delta=0.4)", y, t},
                             {"smooth_l1(beta=0.4)", y, t},
                             {"log_cosh", y, t},
                             {"bce", p, t},
                             {"bce_with_logits(positive_weight=3)", y, t},
                             {"focal", y, t},
                             {"focal(gamma=1,alpha=-1)", y, t},
                             {"nll(class_weights=1:4:0.5)", y, labels()},
                             {"cross_entropy(class_weights=1:4:0.5,smoothing=0.1,ignore=0)", y, labels()},
                             {"kl_div", y, t},
                             {"poisson_nll", y, t},
                             {"cosine", y, t},
                             {"tversky(alpha=0.3,beta=0.7)", p, t},
                             {"dice", p, t}};
  cases.push_back({.text = "gaussian_nll(variance=v):y",
                   .output = y,
                   .target = t,
                   .variance = shares(4, 0.2, 2),
                   .sample_weights = {},
                   .mask = {}});
  for (const char* constants : {",margin=3", ",margin=3,p=1", ",margin=3,p=2.5,swap=true"})
    cases.push_back(triplets(constants));
  cases.push_back({.text = "l1(mask=m,sample_weights=w)",
                   .output = y,
                   .target = t,
                   .variance = {},
                   .sample_weights = w,
                   .mask = m});
  cases.push_back({.text = "cosine(sample_weights=w)",
                   .output = y,
                   .target = t,
                   .variance = {},
                   .sample_weights = w,
                   .mask = {}});
  return cases;
}

TEST(Losses, HaveTheGradientsOfTheirValues) {
  for (const Case& each : differentiated()) {
    const Status status = op::check_gradients(function_of(each), points_of(each));
    EXPECT_TRUE(status) << each.text << ": " << (status ? "" : status.error().what());
  }
}

Graph identity(std::int64_t classes = 3) {
  Graph graph("identity");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {4, classes});
  b.output("y", x * b.state("scale", Tensor::full(ElementType::f32, {classes}, 1)));
  return graph;
}

// A batch of these may be split, and of those not: what divides by what the batch holds needs all of it.
TEST(Losses, KnowWhetherABatchMayBeSplit) {
  const auto verdict = [](const char* text) {
    return static_cast<bool>(
        splittable(verified(make_training_step(identity(), {loss_from_text(text)}, {})), {}));
  };
  for (const char* each : {"smooth_l1", "log_cosh", "bce", "bce_with_logits", "focal", "nll", "kl_div",
                           "poisson_nll", "cosine", "mse(sample_weights=w)", "cross_entropy(smoothing=0.1)"})
    EXPECT_TRUE(verdict(each)) << each;
  for (const char* whole :
       {"dice", "tversky", "mse(mask=m)", "cross_entropy(ignore=1)", "nll(class_weights=1:2:3)"})
    EXPECT_FALSE(verdict(whole)) << whole;
}

TEST(Losses, AskForWhatTheyCompareInOrder) {
  const Graph step =
      make_training_step(identity(), {loss_from_text("bce(sample_weights=w,mask=m),l1(mask=m)")}, {});
  std::vector<std::string> names;
  for (const graph::ValueId id : step.inputs()) names.push_back(step.value(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "target", "w", "m", "learning_rate"}));
}

Graph twins() {
  Graph graph("twins");
  Builder b(graph);
  const Var scale = b.state("scale", Tensor::full(ElementType::f32, {3}, 1));
  for (const char* name : {"a", "p", "n"})
    b.output(name, b.input(std::string("x.") + name, ElementType::f32, {4, 3}) * scale);
  b.output("short", b.input("x.s", ElementType::f32, {4, 2}) * 2.0);
  return graph;
}

TEST(Losses, OfTripletsCompareOutputs) {
  const Graph step =
      make_training_step(twins(), {loss_from_text("triplet_margin(positive=p,negative=n,mask=m):a")}, {});
  std::vector<std::string> names;
  for (const graph::ValueId id : step.inputs()) names.push_back(step.value(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"x.a", "x.p", "x.n", "x.s", "m", "learning_rate"}));
  const auto refused = [](const char* text, std::initializer_list<std::string> why, ErrorCode code) {
    expect_error(code, why, [&] { make_training_step(twins(), {loss_from_text(text)}, {}); });
  };
  refused("triplet_margin(positive=q,negative=n):a", {"the model has no such output", "q"},
          ErrorCode::invalid_argument);
  refused("triplet_margin(positive=p,negative=short):a", {"three outputs", "a negative f32[4,2]"},
          ErrorCode::bad_graph);
}

TEST(LossText, SaysTermsOutputsAndConstants) {
  const std::vector<LossTerm> terms =
      loss_from_text("0.5*huber(delta=2,mask=valid):position,focal(gamma=0):mask");
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[0].kind, LossKind::huber);
  EXPECT_EQ(terms[0].weight, 0.5);
  EXPECT_EQ(terms[0].delta, 2);
  EXPECT_EQ(terms[0].mask, "valid");
  EXPECT_EQ(terms[0].output, "position");
  EXPECT_EQ(terms[1].gamma, 0);
  EXPECT_EQ(terms[1].output, "mask");
  EXPECT_EQ(loss_from_text("")[0].kind, LossKind::mse);
  EXPECT_EQ(loss_from_text("cross_entropy(class_weights=1:2:3,ignore=-1)")[0].class_weights, (Rows{1, 2, 3}));
}

TEST(LossText, WhatIsWrongIsNamed) {
  const auto refused = [](const char* text, std::initializer_list<std::string> why) {
    expect_error(ErrorCode::invalid_argument, why, [&] { loss_from_text(text); });
  };
  refused("mze", {"there is no loss 'mze'", "did you mean 'mse'", "--loss mze"});
  refused("huber(detla=1)", {"huber has no constant 'detla'", "did you mean 'delta'"});
  refused("huber(delta=0)", {"delta must be", "above 0"});
  refused("mse(delta=1)", {"mse has no constant 'delta'"});
  refused("dice(mask=m)", {"dice has no constant 'mask'", "it takes none"});
  refused("huber(delta)", {"'delta' is no NAME=VALUE"});
  refused("huber(delta=1", {"a parenthesis is not closed"});
  refused("huber(delta=1,mask=m,delta=2)", {"'delta' is given twice"});
  refused("huber(delta=1)x", {"'x' is not understood"});
  refused("mse:", {"':' is not understood"});
  refused("-1*mse", {"a term's weight", "above 0"});
  refused("focal(gamma=0.5)", {"slope infinite", "0, or 1 or more"});
  refused("cross_entropy(ignore=1.5)", {"ignore is a label, a whole number, not '1.5'"});
  refused("cross_entropy(class_weights=1:-2)", {"class_weights"});
  refused("gaussian_nll:y", {"none is named", "gaussian_nll(variance=OUTPUT):MEAN"});
  refused("triplet_margin(positive=p):a", {"not all are named", "(positive=OUTPUT,negative=OUTPUT):ANCHOR"});
  refused("triplet_margin(positive=p,negative=n,p=0.5)", {"p must be", "1"});
  refused("triplet_margin(positive=p,negative=n,swap=yes)", {"swap is true or false, not 'yes'"});
  refused("mse(mask=)", {"mask is a name, and none is given"});
  refused("mse,,l1", {"a term has no loss"});
  const LossSpec four{loss_from_text("cross_entropy(class_weights=1:2:3:4)")};
  expect_error(ErrorCode::invalid_argument, {"there are 4 weights of 3 classes"},
               [&] { make_training_step(identity(), four, {}); });
}

}  // namespace
}  // namespace superstep::transform
