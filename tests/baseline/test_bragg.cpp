#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/baseline/xray/bragg.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/bragg_error.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

using data::BraggPeak;

constexpr std::uint64_t seed = 424242;

std::vector<float> noise_free(const BraggPeak& peak, int size) {
  std::vector<float> patch;
  for (int row = 0; row < size; ++row)
    for (int column = 0; column < size; ++column)
      patch.push_back(static_cast<float>(data::bragg_intensity(peak, column, row) + peak.background));
  return patch;
}

void expect_at(const PeakPosition& position, double column, double row, double tolerance) {
  EXPECT_NEAR(position.column, column, tolerance);
  EXPECT_NEAR(position.row, row, tolerance);
}

TEST(BraggPosition, SymmetricPeakInTheMiddleIsExactForAll) {
  const BraggPeak peak{.amplitude = 800,
                       .sigma1 = 1.4,
                       .sigma2 = 1.1,
                       .angle = 0.6,
                       .eta = 0.3,
                       .background = 2,
                       .column = 5,
                       .row = 5};
  const std::vector<float> patch = noise_free(peak, 11);
  expect_at(centroid(patch, 11), 5, 5, 1e-6);
  expect_at(brightest_pixel(patch, 11), 5, 5, 0);
  expect_at(fit_rotated(patch, 11).position, 5, 5, 1e-6);
  expect_at(fit_axis_aligned(patch, 11).position, 5, 5, 1e-6);
}

TEST(BraggPosition, FitFindsEveryParameterWithoutNoise) {
  const BraggPeak peak{.amplitude = 900,
                       .sigma1 = 1.5,
                       .sigma2 = 1.1,
                       .angle = 0.4,
                       .eta = 0.35,
                       .background = 3,
                       .column = 5.31,
                       .row = 4.27};
  const PeakFit fit = fit_rotated(noise_free(peak, 11), 11);
  EXPECT_TRUE(fit.converged);
  expect_at(fit.position, 5.31, 4.27, 1e-5);
  EXPECT_NEAR(fit.amplitude, 900, 0.05);
  EXPECT_NEAR(fit.eta, 0.35, 1e-3);
  EXPECT_NEAR(fit.background, 3, 0.01);
  EXPECT_NEAR(std::max(fit.sigma1, fit.sigma2), 1.5, 1e-3);
  EXPECT_NEAR(std::min(fit.sigma1, fit.sigma2), 1.1, 1e-3);
  const double turned = fit.sigma1 > fit.sigma2 ? fit.angle : fit.angle + std::numbers::pi / 2;
  EXPECT_NEAR(std::sin(2 * (turned - 0.4)), 0, 5e-3);
  // The centroid misses what the edge of the patch cuts away.
  const PeakPosition mass = centroid(noise_free(peak, 11), 11);
  EXPECT_GT(std::hypot(mass.column - 5.31, mass.row - 4.27), 3e-3);
}

TEST(BraggPosition, OtherPatchSizes) {
  for (const int size : {9, 15, 23}) {
    const double middle = size / 2;
    const BraggPeak peak{.amplitude = 500,
                         .sigma1 = 1.2,
                         .sigma2 = 1.2,
                         .eta = 0.5,
                         .background = 1,
                         .column = middle + 0.4,
                         .row = middle - 0.7};
    expect_at(fit_axis_aligned(noise_free(peak, size), size).position, middle + 0.4, middle - 0.7, 1e-4);
  }
}

TEST(BraggPosition, PatchesWithoutAPeakGiveAPositionInside) {
  for (const float value : {0.0f, 7.0f, 65535.0f})
    for (const BraggMethod method :
         {BraggMethod::rotated, BraggMethod::axis_aligned, BraggMethod::centroid, BraggMethod::brightest}) {
      const PeakPosition position = locate(method, std::vector<float>(121, value), 11).position;
      EXPECT_TRUE(position.column >= 0 && position.column <= 10 && position.row >= 0 && position.row <= 10);
    }
  std::vector<float> single(121, 0);
  single[3 * 11 + 9] = 1000;
  expect_at(centroid(single, 11), 9, 3, 1e-9);
  expect_at(fit_rotated(single, 11).position, 9, 3, 0.6);
}

// ---- The check values of the recipe. A standard error of the mean is the standard deviation of the errors
// over the root of the number of patches; the published values were drawn from as many or fewer patches.

struct CheckRow {
  BraggMethod method;
  std::uint64_t patches;
  double mean, p50, p75, p95, p995;  // px
  double tolerance, tail_tolerance;  // relative: of mean, p50, p75; of p95 and p995
};

data::BraggDataset recipe(std::uint64_t patches, ThreadPool& pool) {
  return data::BraggDataset::generate({}, seed, 0, patches, pool);
}

void expect_row(const CheckRow& row) {
  ThreadPool pool(2);
  const data::BraggDataset peaks = recipe(row.patches, pool);
  const std::vector<double> errors = position_errors(locate_all(row.method, peaks, pool), peaks);
  EXPECT_NEAR(mean(errors) / row.mean, 1, row.tolerance);
  EXPECT_NEAR(quantile(errors, 0.5) / row.p50, 1, row.tolerance);
  EXPECT_NEAR(quantile(errors, 0.75) / row.p75, 1, row.tolerance);
  EXPECT_NEAR(quantile(errors, 0.95) / row.p95, 1, row.tail_tolerance);
  EXPECT_NEAR(quantile(errors, 0.995) / row.p995, 1, row.tail_tolerance);
}

// Standard error of the mean: 0.0013 of 0.418 px.
TEST(BraggCheckValues, BrightestPixel) {
  expect_row({BraggMethod::brightest, 20000, 0.418, 0.413, 0.533, 0.727, 1.049, 0.015, 0.04});
}

// Standard error of the mean: 0.0004 of 0.070 px, as much as the value is rounded.
TEST(BraggCheckValues, Centroid) {
  expect_row({BraggMethod::centroid, 20000, 0.070, 0.055, 0.095, 0.184, 0.307, 0.03, 0.06});
}

// Standard error of the mean with 6,000 patches: 0.00035 of 0.031 px here and there; 30 patches lie beyond
// the last quantile.
TEST(BraggCheckValues, AxisAlignedFit) {
  expect_row({BraggMethod::axis_aligned, 6000, 0.031, 0.023, 0.042, 0.085, 0.143, 0.05, 0.1});
}

TEST(BraggCheckValues, RotatedFit) {
  expect_row({BraggMethod::rotated, 6000, 0.0298, 0.022, 0.040, 0.081, 0.136, 0.05, 0.1});
}

// A wrong recipe or estimator is seen: without subtracting the background the centroid is far off.
TEST(BraggCheckValues, CentroidWithBackgroundIsOutsideTheTolerance) {
  ThreadPool pool(2);
  const data::BraggDataset peaks = recipe(2000, pool);
  std::vector<double> errors;
  std::vector<float> patch(121);
  for (std::int64_t i = 0; i < peaks.size(); ++i) {
    peaks.raw(i, patch);
    double total = 0, column = 0, row = 0;
    for (int at = 0; at < 121; ++at) {
      total += patch[static_cast<std::size_t>(at)];
      column += patch[static_cast<std::size_t>(at)] * (at % 11);
      row += patch[static_cast<std::size_t>(at)] * (at / 11);
    }
    errors.push_back(std::hypot(column / total - peaks.position(i)[0], row / total - peaks.position(i)[1]));
  }
  EXPECT_GT(mean(errors), 2 * 0.070);
}

// The mean distance that no unbiased estimator can go below: of a normal distribution with the covariance
// of the centre from the inverse of the Fisher information of Poisson counts.
double cramer_rao_distance(const BraggPeak& peak) {
  const auto at = [](BraggPeak p, int parameter, double step, int column, int row) {
    double* const fields[] = {&p.column, &p.row,   &p.amplitude, &p.sigma1,
                              &p.sigma2, &p.angle, &p.eta,       &p.background};
    *fields[parameter] += step;
    return data::bragg_intensity(p, column, row) + p.background;
  };
  Eigen::Matrix<double, 8, 8> information = Eigen::Matrix<double, 8, 8>::Zero();
  for (int row = 0; row < 11; ++row)
    for (int column = 0; column < 11; ++column) {
      Eigen::Matrix<double, 8, 1> derivative;
      for (int p = 0; p < 8; ++p) {
        const double step = p == 2 ? 1e-3 : 1e-5;
        derivative[p] = (at(peak, p, step, column, row) - at(peak, p, -step, column, row)) / (2 * step);
      }
      information += derivative * derivative.transpose() / at(peak, 0, 0, column, row);
    }
  const Eigen::Matrix2d covariance = information.inverse().topLeftCorner<2, 2>();
  const Eigen::Vector2d variances = Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d>(covariance).eigenvalues();
  const double modulus = std::sqrt(std::max(0.0, 1 - variances[0] / variances[1]));
  return std::sqrt(2 * variances[1] / std::numbers::pi) * std::comp_ellint_2(modulus);
}

TEST(BraggCheckValues, CramerRaoLimit) {
  const data::BraggPatchGenerator generator({});
  std::vector<double> limits;
  for (std::uint64_t i = 0; i < 6000; ++i) limits.push_back(cramer_rao_distance(generator.peak(seed, i)));
  EXPECT_NEAR(mean(limits), 0.0296, 0.0012);
}

// ---- The command's work.

struct BraggRun {
  std::string name;
  std::filesystem::path input, output, picture;
  std::vector<std::string> settings;
  Report operator()() const {
    ThreadPool pool(2);
    const Entry& entry = find_baseline(name);
    return entry.run({input, output, picture, &pool}, Options(entry.options, settings));
  }
};

BraggRun run_on(const std::filesystem::path& input) { return {.name = "braggnn", .input = input}; }

// NaN when the report has no such metric.
double metric(const Report& report, std::string_view name) {
  const auto found = std::ranges::find(report.metrics, name, &Metric::name);
  return found == report.metrics.end() ? std::nan("") : found->value;
}

TEST(BraggBaseline, FitsAFileOfPatches) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  data::BraggPatchGenerator({}).write({folder / "peaks.h5", seed, 300, &pool});
  BraggRun run = run_on(folder / "peaks.h5");
  run.output = folder / "fits.h5";
  run.picture = folder / "fits.html";
  const Report report = run();
  EXPECT_LT(metric(report, "error_px_mean"), 0.04);
  EXPECT_GT(metric(report, "throughput"), 0);
  EXPECT_GT(metric(report, "converged"), 0.99);
  EXPECT_NE(report.text.find("rotated"), std::string::npos);
  const data::Hdf5File fits(folder / "fits.h5"), peaks(folder / "peaks.h5");
  const Tensor found = fits.read("ploc", ElementType::f64), truth = peaks.read("ploc", ElementType::f64),
               error = fits.read("error_px", ElementType::f64);
  for (std::int64_t i = 0; i < 300; ++i)
    EXPECT_NEAR(11 * std::hypot(found.at(2 * i) - truth.at(2 * i), found.at(2 * i + 1) - truth.at(2 * i + 1)),
                error.at(i), 1e-5);
  EXPECT_EQ(std::get<std::string>(fits.attributes().at("method")), "rotated");
  EXPECT_EQ(fits.info("sigma1").shape, (Shape{300}));
  const std::string page = read_text_file(folder / "fits.html");
  EXPECT_NE(page.find("true center"), std::string::npos);
  EXPECT_NE(page.find("The worst"), std::string::npos);
  // The fits can be trained on in place of the truth.
  const auto data = data::BraggDataset::open(folder / "peaks.h5", {.labels = folder / "fits.h5"});
  EXPECT_NEAR(data.position(7)[0], 11 * found.at(14), 1e-5);
}

TEST(BraggBaseline, EveryMethodAndFilesWithoutTheTruth) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto patches = data::generate_in_memory(data::BraggPatchGenerator({}), seed, 0, 50, pool)[0];
  data::Hdf5Writer file(folder / "raw.h5");
  file.write("patch", patches);
  file.close();
  for (const std::string& method : bragg_method_names()) {
    BraggRun run = run_on(folder / "raw.h5");
    run.settings = {"method=" + method};
    run.output = folder / "out.h5";
    run.picture = folder / "out.html";
    const Report report = run();
    EXPECT_TRUE(std::isnan(metric(report, "error_px_mean")));
    EXPECT_NE(report.text.find(method), std::string::npos);
    EXPECT_FALSE(data::Hdf5File(folder / "out.h5").contains("error_px"));
  }
}

TEST(BraggBaseline, FitsFrames) {
  const ScratchFolder folder;
  const data::GeneratorEntry& entry = data::find_generator("braggnn");
  ThreadPool pool(2);
  const std::vector<std::string> settings{"mode=frames", "frame_height=256", "frame_width=256",
                                          "peaks_per_frame=5"};
  entry.make(Options(entry.options, settings))->write({folder / "frames.h5", seed, 20, &pool});
  const Report report = run_on(folder / "frames.h5")();
  EXPECT_LT(metric(report, "error_px_p50"), 0.06);
}

TEST(BraggBaseline, WrongCallsAreRefused) {
  const ScratchFolder folder;
  expect_error(ErrorCode::not_found, {"none.h5"}, [&] { run_on(folder / "none.h5")(); });
  BraggRun run = run_on(folder / "none.h5");
  run.settings = {"method=guess"};
  expect_error(ErrorCode::invalid_argument, {"'guess'", "rotated, axis-aligned"}, [&] { run(); });
  run.name = "bragnn";
  expect_error(ErrorCode::invalid_argument, {"bragnn", "'braggnn'"}, [&] { run(); });
}

TEST(BraggBaseline, AnInterruptStopsIt) {
  ThreadPool pool(1);
  const data::BraggDataset peaks = recipe(10, pool);
  request_interrupt();
  expect_error(ErrorCode::interrupted, {"no result"},
               [&] { locate_all(BraggMethod::centroid, peaks, pool); });
  clear_interrupt();
}

TEST(BraggBaseline, TheSameOnAnyThreads) {
  ThreadPool one(1), four(4);
  const data::BraggDataset peaks = recipe(1000, one);
  const auto a = locate_all(BraggMethod::rotated, peaks, one),
             b = locate_all(BraggMethod::rotated, peaks, four);
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].position.column, b[i].position.column);
    ASSERT_EQ(a[i].sigma1, b[i].sigma1);
  }
}

TEST(PositionError, QuantilesAreThoseOfTheErrors) {
  std::vector<double> errors(1001);
  std::iota(errors.begin(), errors.end(), 0.0);
  std::ranges::reverse(errors);
  const std::vector<Metric> metrics = data::position_error_metrics(errors);
  const double expected[] = {500, 500, 750, 950, 995};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(metrics[i].value, expected[i], 1e-9);
  EXPECT_EQ(quantile(std::vector<double>{1, 2}, 0.25), 1.25);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

}  // namespace
}  // namespace superstep::baseline
