// Metrics by name, of a user's own model: against counts by hand and the definitions of scikit-learn.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/run/user/metric_families.h"
#include "superstep/run/user/metrics.h"
#include "superstep/transform/training/loss_text.h"
#include "tests/expect_error.h"

namespace superstep::run {
namespace {

struct Answers {
  std::string loss;
  Tensor output, truth;
  std::int64_t classes = 0;
  Tensor mask = {};
  Tensor variance = {};
};

double metric(const std::string& name, const Answers& answers) {
  const transform::LossTerm term = transform::loss_from_text(answers.loss).at(0);
  std::vector<std::int64_t> at(static_cast<std::size_t>(answers.output.shape()[0]));
  std::iota(at.begin(), at.end(), 0);
  const std::int64_t places = answers.truth.element_count() / answers.truth.shape()[0];
  const Compared compared{.term = term,
                          .output = answers.output,
                          .truth = answers.truth,
                          .at = at,
                          .mask = answers.mask.element_count() > 0 ? &answers.mask : nullptr,
                          .variance = &answers.variance,
                          .classes = answers.classes,
                          .inner = places};
  const std::string names[] = {name};
  return measure(names, compared).at(0);
}

Tensor numbers(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from<float>(shape, values);
}

// Residuals 1, 0, -2, 1 of a truth with mean 4 and squares 36 about it.
const Answers regression{
    .loss = "mse", .output = numbers({4, 1}, {1, 3, 4, 11}), .truth = numbers({4, 1}, {0, 3, 6, 10})};

TEST(UserMetrics, OfNumbers) {
  EXPECT_NEAR(metric("rmse", regression), std::sqrt(6.0 / 4), 1e-12);
  EXPECT_NEAR(metric("mae", regression), 1, 1e-12);
  EXPECT_NEAR(metric("max_error", regression), 2, 1e-12);
  const double mean = 19.0 / 4, spread = 145 - 4 * mean * mean;
  EXPECT_NEAR(metric("r2", regression), 1 - 6 / spread, 1e-12);
  // Centered products: 134 + ... of 4.75 and 4.75.
  EXPECT_NEAR(metric("pearson", regression),
              (143 - 19.0 * 19 / 4) / std::sqrt((147 - 19.0 * 19 / 4) * (145 - 19.0 * 19 / 4)), 1e-12);
  Answers shares = regression;
  shares.truth = numbers({4, 1}, {2, 3, 5, 10});
  EXPECT_NEAR(metric("mape", shares), (0.5 + 0 + 0.2 + 0.1) / 4, 1e-7);
  Answers constant = regression;
  constant.truth = numbers({4, 1}, {3, 3, 3, 3});
  EXPECT_TRUE(std::isnan(metric("r2", constant))) << "nothing to explain";
}

TEST(UserMetrics, R2IsAboutTheMeanOfEachElement) {
  // Two columns of means 1 and 101: about one common mean nearly everything would be explained.
  const Answers columns{
      .loss = "l1", .output = numbers({2, 2}, {1, 101, 1, 101}), .truth = numbers({2, 2}, {0, 100, 2, 102})};
  EXPECT_NEAR(metric("r2", columns), 0, 1e-12);
}

TEST(UserMetrics, LikelihoodsAreThoseOfTheirLosses) {
  Answers gaussian{.loss = "gaussian_nll(variance=v):y",
                   .output = numbers({2, 1}, {1, 2}),
                   .truth = numbers({2, 1}, {0, 2}),
                   .classes = 0,
                   .mask = {},
                   .variance = numbers({2, 1}, {4, 1})};
  EXPECT_NEAR(metric("nll", gaussian), (std::log(4.0) + 0.25) / 4, 1e-12);
  const Answers poisson{
      .loss = "poisson_nll", .output = numbers({2, 1}, {0, 0}), .truth = numbers({2, 1}, {3, 1})};
  EXPECT_NEAR(metric("nll", poisson), 1, 1e-12);
  EXPECT_NEAR(metric("rmse", poisson), std::sqrt(2.0), 1e-12) << "of the rate, not of its logarithm";
}

// Found 3 of 4, one of 3 invented.
const Answers yes_or_no{.loss = "bce",
                        .output = numbers({7, 1}, {0.9F, 0.8F, 0.7F, 0.2F, 0.6F, 0.1F, 0.3F}),
                        .truth = numbers({7, 1}, {1, 1, 1, 1, 0, 0, 0})};

TEST(UserMetrics, OfYesAndNo) {
  EXPECT_NEAR(metric("accuracy", yes_or_no), 5.0 / 7, 1e-12);
  EXPECT_NEAR(metric("precision", yes_or_no), 3.0 / 4, 1e-12);
  EXPECT_NEAR(metric("recall", yes_or_no), 3.0 / 4, 1e-12);
  EXPECT_NEAR(metric("f1", yes_or_no), 3.0 / 4, 1e-12);
  EXPECT_NEAR(metric("iou", yes_or_no), 3.0 / 5, 1e-12);
  // Pairs in order: three times 3, and 0.2 above 0.1 alone.
  EXPECT_NEAR(metric("auc", yes_or_no), 10.0 / 12, 1e-12);
  const Answers logits{.loss = "focal", .output = numbers({2, 1}, {-1, 2}), .truth = numbers({2, 1}, {0, 1})};
  EXPECT_EQ(metric("accuracy", logits), 1) << "a score of a half is a logit of 0";
  EXPECT_NEAR(metric("bce", logits), (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(-2.0))) / 2, 1e-7);
  Answers masked = yes_or_no;
  masked.mask = numbers({7, 1}, {1, 1, 1, 0, 0, 1, 1});
  EXPECT_EQ(metric("f1", masked), 1);
  EXPECT_EQ(metric("auc", masked), 1);
}

TEST(UserMetrics, TiesCountByHalvesAndOneKindAloneHasNoArea) {
  EXPECT_EQ(area_under_curve({{0.5, 1, true}, {0.5, 1, false}}), 0.5);
  EXPECT_EQ(area_under_curve({{0.5, 1, true}, {0.5, 3, false}, {0.1, 1, false}}), (1 + 3 * 0.5) / 4);
  EXPECT_TRUE(std::isnan(area_under_curve({{0.5, 1, true}, {0.2, 1, true}})));
}

// Labels 0 0 1 2, said 0 1 1 1.
const Answers classes{.loss = "cross_entropy",
                      .output = numbers({4, 3}, {2, 1, 0, 0, 1, 0, 0, 3, 0, 0, 1, 0.5F}),
                      .truth = Tensor::from<std::int64_t>({4}, {0, 0, 1, 2}),
                      .classes = 3};

TEST(UserMetrics, OfClasses) {
  EXPECT_EQ(metric("accuracy", classes), 0.5);
  EXPECT_NEAR(metric("balanced_accuracy", classes), (0.5 + 1 + 0) / 3, 1e-12);
  EXPECT_NEAR(metric("precision", classes), (1 + 1.0 / 3 + 0) / 3, 1e-12);
  EXPECT_NEAR(metric("f1", classes), (2.0 / 3 + 0.5 + 0) / 3, 1e-12);
  EXPECT_NEAR(metric("iou", classes), (0.5 + 1.0 / 3 + 0) / 3, 1e-12);
  EXPECT_EQ(metric("top5", classes), 1);
  Answers ignoring = classes;
  ignoring.loss = "cross_entropy(ignore=2)";
  EXPECT_NEAR(metric("accuracy", ignoring), 2.0 / 3, 1e-12);
}

// Zeros everywhere are the answer "class 0", and not right whatever the label is.
TEST(UserMetrics, EqualScoresAreTheFirstClass) {
  const Answers nothing{.loss = "cross_entropy",
                        .output = Tensor(ElementType::f32, {4, 2}),
                        .truth = Tensor::from<std::int64_t>({4}, {0, 1, 1, 1}),
                        .classes = 2};
  EXPECT_EQ(metric("accuracy", nothing), 0.25);
  EXPECT_EQ(metric("auc", nothing), 0.5);
}

TEST(UserMetrics, OfTokensLeaveOutWhatIsNotScored) {
  // Scores [1, 3, 2] with the classes last.
  const Answers tokens{.loss = "token_cross_entropy",
                       .output = numbers({1, 3, 2}, {1, 0, 0, 1, 5, 0}),
                       .truth = Tensor::from<std::int64_t>({1, 3}, {0, 0, -1}),
                       .classes = 2};
  EXPECT_EQ(metric("accuracy", tokens), 0.5);
}

TEST(UserMetrics, OfDistributionsAndDirections) {
  const Answers kl{.loss = "kl_div",
                   .output = numbers({1, 2}, {std::log(0.25F), std::log(0.75F)}),
                   .truth = numbers({1, 2}, {0.5F, 0.5F})};
  EXPECT_NEAR(metric("kl_div", kl), 0.5 * std::log(2.0) + 0.5 * std::log(0.5 / 0.75), 1e-6);
  const Answers turned{
      .loss = "cosine", .output = numbers({2, 2}, {1, 0, 1, 1}), .truth = numbers({2, 2}, {0, 2, 2, 2})};
  EXPECT_NEAR(metric("cosine_similarity", turned), 0.5, 1e-6);
}

// Anchors at 0 and 10; what is like them 1 and 4 away, what is not 3 and 2.
TEST(UserMetrics, OfTriplets) {
  const transform::LossTerm term =
      transform::loss_from_text("triplet_margin(positive=p,negative=n,margin=1)")[0];
  const Tensor anchor = numbers({2, 1}, {0, 10}), positive = numbers({2, 1}, {1, 14}),
               negative = numbers({2, 1}, {-3, 8}), mask = numbers({2}, {1, 0});
  const std::int64_t at[] = {0, 1};
  Compared compared{.term = term, .output = anchor, .truth = anchor, .at = at};
  compared.positive = &positive, compared.negative = &negative;
  const std::string names[] = {"triplet_margin", "accuracy"};
  const std::vector<double> both = measure(names, compared);
  EXPECT_NEAR(both[0], 3.0 / 2, 1e-5) << "0, and 4 - 2 + 1";
  EXPECT_EQ(both[1], 0.5);
  compared.mask = &mask;
  EXPECT_EQ(measure(names, compared)[1], 1);
}

// Frames say "1 1 - 1 2" and "- 2 - - -"; so are "1 1 2" and "2 1".
TEST(UserMetrics, OfSequences) {
  Answers spoken{.loss = "ctc",
                 .output = Tensor(ElementType::f32, {2, 5, 3}),
                 .truth = Tensor::from<std::int64_t>({2, 3}, {1, 1, 2, 2, 1, -1}),
                 .classes = 3};
  const std::int64_t said[] = {1, 1, 0, 1, 2, 0, 2, 0, 0, 0};
  for (std::int64_t t = 0; t < 10; ++t) spoken.output.set(3 * t + said[t], 1);
  EXPECT_EQ(metric("label_error", spoken), 1.0 / 5);
  EXPECT_EQ(metric("accuracy", spoken), 0.5);
  Answers one = spoken;  // a frame of probabilities e/(e + 2) and twice 1/(e + 2): "2" or nothing
  one.output = numbers({1, 1, 3}, {1, 0, 0}), one.truth = Tensor::from<std::int64_t>({1, 2}, {2, 0});
  EXPECT_NEAR(metric("ctc", one), std::log(std::exp(1.0) + 2), 1e-9);
  EXPECT_EQ(metric("label_error", one), 1);
  one.truth = Tensor::from<std::int64_t>({1, 2}, {2, 2});
  EXPECT_TRUE(std::isinf(metric("ctc", one))) << "three frames at least";
  one.loss = "ctc(zero_infinity=true)";
  EXPECT_EQ(metric("ctc", one), 0);
  one.output.set(1, std::nan(""));
  EXPECT_TRUE(std::isnan(metric("accuracy", one)));
}

TEST(UserMetrics, NaNIsNoSuccess) {
  Answers broken = classes;
  broken.output.set(0, std::nan(""));
  for (const char* name : {"accuracy", "f1", "cross_entropy"})
    EXPECT_TRUE(std::isnan(metric(name, broken))) << name;
  Answers lost = regression;
  lost.output.set(0, std::nan(""));
  for (const char* name : {"rmse", "max_error"}) EXPECT_TRUE(std::isnan(metric(name, lost))) << name;
}

TEST(UserMetrics, EveryKindHasItsOwnAndSaysWhichWayIsBetter) {
  for (const char* text : {"mse", "bce", "cross_entropy", "kl_div", "cosine", "dice", "poisson_nll",
                           "triplet_margin(positive=p,negative=n)", "ctc"}) {
    const transform::LossKind kind = transform::loss_from_text(text)[0].kind;
    const std::vector<std::string> all = metrics_for(kind);
    for (const std::string& name : default_metrics(kind))
      EXPECT_TRUE(std::ranges::find(all, name) != all.end()) << name;
  }
  for (const char* better : {"accuracy", "r2", "auc", "iou"}) EXPECT_TRUE(higher_is_better(better));
  for (const char* better : {"rmse", "bce", "kl_div", "nll", "label_error", "triplet_margin"})
    EXPECT_FALSE(higher_is_better(better));
  EXPECT_EQ(metrics_from_text("r2,mae:position").at(1).output, "position");
  expect_error(ErrorCode::invalid_argument, {"there is no metric 'f2'", "--metrics f2"},
               [] { metrics_from_text("f2"); });
  expect_error(ErrorCode::invalid_argument, {"names it", "r2:OUTPUT"}, [] { metrics_from_text("r2:"); });
}

}  // namespace
}  // namespace superstep::run
