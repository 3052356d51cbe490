#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/baseline/imaging/hog.h"
#include "superstep/baseline/linear_svm.h"
#include "superstep/file/hdf5/hdf5.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

// Grey 16 x 16 images whose brightness rises along one direction, by `step` grey levels a pixel.
std::vector<std::uint8_t> ramp(int dx, int dy, int start = 100) {
  std::vector<std::uint8_t> image;
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x) image.push_back(static_cast<std::uint8_t>(start + dx * x + dy * y));
  return image;
}

constexpr HogSettings four_bins{8, 4};  // centred on 22.5, 67.5, 112.5 and 157.5 degrees

TEST(Hog, PutsARampIntoTheBinsOfItsDirection) {
  const auto features = hog_features(ramp(3, 3), 16, 16, four_bins);  // 45 degrees: two bins alike
  ASSERT_EQ(features.size(), 16u);
  double square = 0;
  for (std::size_t cell = 0; cell < 4; ++cell) {
    EXPECT_NEAR(features[4 * cell], features[4 * cell + 1], 1e-6);
    EXPECT_GT(features[4 * cell], 0.3);
    EXPECT_NEAR(features[4 * cell + 2], 0, 0.08);  // the edges, where the gradient is halved along one axis
  }
  for (const float value : features) square += double{value} * value;
  EXPECT_NEAR(square, 1, 1e-4);
}

TEST(Hog, DoesNotSeeBrightnessContrastOrSign) {
  const auto features = hog_features(ramp(4, 0, 100), 16, 16, four_bins);
  const auto brighter = hog_features(ramp(4, 0, 150), 16, 16, four_bins),
             weaker = hog_features(ramp(2, 0), 16, 16, four_bins),
             opposite = hog_features(ramp(-4, 0, 200), 16, 16, four_bins),
             turned = hog_features(ramp(0, 4), 16, 16, four_bins);
  double difference = 0;
  for (std::size_t k = 0; k < features.size(); ++k) {
    EXPECT_NEAR(features[k], brighter[k], 1e-6);
    EXPECT_NEAR(features[k], weaker[k], 1e-3);
    EXPECT_NEAR(features[k], opposite[k], 1e-6);
    difference += std::abs(features[k] - turned[k]);
  }
  EXPECT_GT(difference, 1);  // but it sees the direction
  for (const float value : hog_features(ramp(0, 0), 16, 16, four_bins)) EXPECT_EQ(value, 0);
  expect_error(ErrorCode::invalid_argument, {"fewer than 2 x 2 cells", "smaller cells"}, [] {
    hog_length(15, 32, {8, 9});
  });
}

struct Points {
  TreeFeatures x;
  std::vector<int> labels;
};
// Three clouds around the corners of a triangle.
Points clouds(std::uint64_t seed, int count, double spread) {
  RandomStream random(seed, 0);
  Points points{TreeFeatures(count, 2), {}};
  constexpr float corners[3][2] = {{0, 0}, {4, 0}, {0, 4}};
  for (int k = 0; k < count; ++k) {
    points.labels.push_back(k % 3);
    for (int c = 0; c < 2; ++c)
      points.x(k, c) = corners[k % 3][c] + static_cast<float>(spread * random.normal());
  }
  return points;
}

double accuracy(const LinearSvm& svm, const Points& points) {
  const Eigen::MatrixXf scores = svm.scores(points.x);
  double right = 0;
  for (Eigen::Index k = 0; k < scores.rows(); ++k) {
    Eigen::Index best;
    scores.row(k).maxCoeff(&best);
    right += best == points.labels[static_cast<std::size_t>(k)];
  }
  return right / static_cast<double>(scores.rows());
}

TEST(LinearSvm, SeparatesCloudsAndNotShuffledOnes) {
  ThreadPool one(1), three(3);
  const Points known = clouds(1, 300, 0.5), others = clouds(2, 300, 0.5);
  const LinearSvm svm = fit_linear_svm(known.x, known.labels, 3, 1, one);
  EXPECT_GT(accuracy(svm, others), 0.98);
  const LinearSvm again = fit_linear_svm(known.x, known.labels, 3, 1, three);
  EXPECT_EQ(svm.weights, again.weights);
  EXPECT_EQ(svm.bias, again.bias);
  Points shuffled = known;
  RandomStream random(5, 0);
  for (int& label : shuffled.labels) label = static_cast<int>(random.below(3));
  EXPECT_LT(accuracy(fit_linear_svm(shuffled.x, shuffled.labels, 3, 1, one), others), 0.7);
}

// Two points, far apart in one column: the plane lies half way, the margin is theirs.
TEST(LinearSvm, FindsTheWidestMargin) {
  ThreadPool pool(1);
  TreeFeatures x(2, 1);
  x << -3, 3;
  const LinearSvm svm = fit_linear_svm(x, {0, 1}, 2, 1e4, pool);
  EXPECT_NEAR(svm.weights(1, 0), 1.0 / 3, 1e-2);
  EXPECT_NEAR(svm.bias[1], 0, 1e-3);
  EXPECT_NEAR(svm.weights(0, 0), -svm.weights(1, 0), 1e-3);
}

TEST(LinearSvm, RefusesLabelsThatMakeNoSense) {
  ThreadPool pool(1);
  const TreeFeatures x = TreeFeatures::Zero(2, 1);
  const auto refused = [&](const std::vector<int>& labels, const char* message) {
    expect_error(ErrorCode::invalid_argument, {message}, [&] { fit_linear_svm(x, labels, 2, 1, pool); });
  };
  refused({0}, "differ in number");
  refused({0, 2}, "outside the classes");
  refused({1, 1}, "two classes at least");
}

TEST(ImageClassifier, BeatsPixelsAndReadsBothFormats) {
  const ScratchFolder folder;
  generate("cifar10-cnn", folder / "c.h5", 1500);
  generate("cifar10-cnn", folder / "c.bin", 1500);
  const Report report = run_baseline("cifar10-cnn", folder / "c.h5", folder / "out.h5");
  std::printf("%s", report.text.c_str());
  EXPECT_GT(metric(report, "accuracy"), metric(report, "floor_accuracy"));
  EXPECT_GT(metric(report, "accuracy"), 0.2);
  EXPECT_GE(metric(report, "accuracy_top5"), metric(report, "accuracy"));
  EXPECT_EQ(metric(run_baseline("cifar10-cnn", folder / "c.bin"), "accuracy"), metric(report, "accuracy"));
  EXPECT_EQ(data::Hdf5File(folder / "out.h5").info("label_pred").shape, (Shape{300}));
  expect_error(ErrorCode::invalid_argument, {"fewer than 2 x 2 cells"},
               [&] { run_baseline("cifar10-cnn", folder / "c.h5", {}, {"cell=20"}); });
  generate("cifar10-cnn", folder / "few.h5", 5);
  expect_error(ErrorCode::bad_file, {"few.h5", "too few images"},
               [&] { run_baseline("cifar10-cnn", folder / "few.h5"); });
}

}  // namespace
}  // namespace superstep::baseline
