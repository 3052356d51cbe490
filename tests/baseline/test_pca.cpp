#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/xray/pca.h"
#include "superstep/baseline/xray/pca_quality.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/frames.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

const auto no_progress = [](double, double) {};

FrameSource source_of(const FrameMatrix& frames) {
  return {frames.rows(), frames.cols(), [&frames](std::int64_t first, std::int64_t count) -> FrameMatrix {
            return frames.middleRows(first, count);
          }};
}

PcaBasis basis_of(const FrameMatrix& frames, int components, int threads = 2) {
  ThreadPool pool(threads);
  PcaSettings settings;
  settings.components = components;
  return principal_components(source_of(frames), settings, pool, no_progress);
}

FrameMatrix random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  RandomStream random(seed);
  FrameMatrix matrix(rows, columns);
  for (Eigen::Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = static_cast<float>(random.normal());
  return matrix;
}

// Frames of a spectrum that falls as 0.8^i, plus a mean.
FrameMatrix decaying_frames(Eigen::Index frames, Eigen::Index pixels) {
  const Eigen::Index rank = 40;
  FrameMatrix left = random_matrix(frames, rank, 1);
  for (Eigen::Index i = 0; i < rank; ++i) left.col(i) *= std::pow(0.8f, static_cast<float>(i));
  return (left * random_matrix(rank, pixels, 2)).rowwise() + random_matrix(1, pixels, 3).row(0);
}

double nrmse(const FrameMatrix& frames, const FrameMatrix& returned, const PcaBasis& basis) {
  QualitySum sum;
  sum.add(frames, returned, basis.mean);
  return sum.quality().nrmse;
}

TEST(Pca, ComponentsAreOrthonormal) {
  const PcaBasis basis = basis_of(decaying_frames(300, 500), 20);
  const Eigen::MatrixXf gram = basis.components.transpose() * basis.components;
  EXPECT_LT((gram - Eigen::MatrixXf::Identity(20, 20)).cwiseAbs().maxCoeff(), 2e-6);
}

TEST(Pca, CapturedEnergyGrowsWithKAndIsTheEigenvalueSum) {
  const FrameMatrix frames = decaying_frames(300, 500);
  const PcaBasis basis = basis_of(frames, 24);
  const FrameMatrix codes = compress(frames, basis);
  double captured = 0;
  for (Eigen::Index k = 1; k <= 24; ++k) {
    const double next = codes.leftCols(k).cast<double>().squaredNorm() / 300;
    EXPECT_GE(next, captured);
    captured = next;
    EXPECT_NEAR(captured / basis.eigenvalues.head(k).sum(), 1, 1e-4);
  }
  const double lost = std::pow(nrmse(frames, reconstruct(codes, basis), basis), 2);
  EXPECT_NEAR(1 - lost, captured / basis.total_variance, 1e-4);
}

TEST(Pca, ReproducesDataOfItsRank) {
  const FrameMatrix frames =
      (random_matrix(200, 6, 4) * random_matrix(6, 400, 5)).rowwise() + random_matrix(1, 400, 6).row(0);
  const PcaBasis enough = basis_of(frames, 6), short_of_one = basis_of(frames, 5);
  EXPECT_LT(nrmse(frames, reconstruct(compress(frames, enough), enough), enough), 3e-6);
  EXPECT_GT(nrmse(frames, reconstruct(compress(frames, short_of_one), short_of_one), short_of_one), 0.1);
}

// The ceiling: the exact truncated decomposition, of which NRMSE must come within 1 %.
TEST(Pca, ComesWithinAPercentOfTheExactDecomposition) {
  const FrameMatrix frames = random_matrix(200, 150, 7);  // a flat spectrum is the hard case
  const PcaBasis basis = basis_of(frames, 20);
  const Eigen::MatrixXd centred = (frames.rowwise() - basis.mean.transpose()).cast<double>();
  const Eigen::VectorXd exact = Eigen::BDCSVD<Eigen::MatrixXd>(centred).singularValues();
  const double best = std::sqrt(1 - exact.head(20).squaredNorm() / exact.squaredNorm());
  const double found = nrmse(frames, reconstruct(compress(frames, basis), basis), basis);
  EXPECT_GE(found, best * (1 - 1e-5));
  EXPECT_LT(found, 1.01 * best);
}

TEST(Pca, SameBitsOnAnyNumberOfThreads) {
  const FrameMatrix frames = decaying_frames(600, 2100);
  const PcaBasis one = basis_of(frames, 8, 1), three = basis_of(frames, 8, 3);
  EXPECT_EQ(one.components, three.components);
  EXPECT_EQ(one.eigenvalues, three.eigenvalues);
}

TEST(Pca, RefusesTooFewFramesAndWhatIsNoNumber) {
  const auto message = [](const FrameMatrix& frames) -> std::string {
    try {
      basis_of(frames, 10);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(random_matrix(9, 50, 1)).find("10 components from 9 frames of 50 pixels"),
            std::string::npos);
  FrameMatrix bad = random_matrix(20, 50, 1);
  bad(3, 4) = NAN;
  EXPECT_NE(message(bad).find("not finite"), std::string::npos);
}

FrameMatrix diffraction_frames(std::uint64_t frames, const std::vector<std::string>& assignments) {
  const auto entry = data::pca_compress_generator();
  const auto generator = entry.make(Options(entry.options, assignments));
  ThreadPool pool(2);
  const auto fields = generate_in_memory(*generator, 1, 0, frames, pool);
  const std::int64_t pixels = fields[0].element_count() / static_cast<std::int64_t>(frames);
  return Eigen::Map<const FrameMatrix>(fields[0].as<float>().data(), static_cast<Eigen::Index>(frames),
                                       pixels);
}

double relative_error(const FrameMatrix& a, const FrameMatrix& b) { return (a - b).norm() / b.norm(); }

TEST(PcaHalf, ScaledBasisIsWithinAThousandthOfSinglePrecision) {
  const FrameMatrix frames = diffraction_frames(200, {"window=64", "points=100"});
  const PcaBasis basis = basis_of(frames, 16);
  const HalfBasis half = half_basis(basis);
  const float largest = half.components.cwiseAbs().maxCoeff();
  EXPECT_TRUE(largest >= 16384 && largest < 32768);
  EXPECT_LT(relative_error(compress(frames, basis, half), compress(frames, basis)), 1e-3);
  // Single precision is double precision for practical purposes.
  const Eigen::MatrixXd exact =
      (frames.rowwise() - basis.mean.transpose()).cast<double>() * basis.components.cast<double>();
  EXPECT_LT((compress(frames, basis).cast<double>() - exact).norm() / exact.norm(), 1e-5);
}

// What was found of "plain 16 bits give wrong results": rounding the basis alone does not spoil diffraction
// frames, whose large entries carry the codes; 16 bits for frames, products and sums do, since counts and
// sums overflow beyond 65504. A flat basis of 2^24 pixels (entries of 2^-12) does lose digits unscaled.
TEST(PcaHalf, PlainHalfPrecisionGoesWrongWhereRangesEnd) {
  const FrameMatrix frames = diffraction_frames(20, {"window=64", "points=20", "photons=1e7"});
  const PcaBasis basis = basis_of(frames, 4);
  EXPECT_LT(relative_error(compress(frames, basis, half_basis(basis, 1)), compress(frames, basis)), 1e-3);
  const FrameMatrix all_half = compress_all_half(frames, basis);
  EXPECT_TRUE(!all_half.allFinite() || relative_error(all_half, compress(frames, basis)) > 0.01);

  PcaBasis small = basis;
  small.components *= 0x1p-18f;  // under the format's normal range of 2^-14
  const FrameMatrix expected = compress(frames, small);
  EXPECT_GT(relative_error(compress(frames, small, half_basis(small, 1)), expected), 2e-3);
  EXPECT_LT(relative_error(compress(frames, small, half_basis(small)), expected), 1e-3);
}

TEST(PcaQuality, NumbersOfKnownErrors) {
  PcaBasis basis;
  basis.mean = Eigen::VectorXf::Zero(4);
  FrameMatrix frames(1, 4), returned(1, 4);
  frames << 100, 100, 100, 100;
  returned << 121, 121, 121, 121;
  QualitySum sum;
  sum.add(frames, returned, basis.mean);
  EXPECT_NEAR(sum.quality().nrmse, 0.21, 1e-6);
  EXPECT_NEAR(sum.quality().psnr, 20, 1e-4);  // an error of 1 below a peak of 10
}

TEST(PcaQuality, BinningKeepsBlockMeans) {
  FrameMatrix frame(1, 16);
  for (int i = 0; i < 16; ++i) frame(0, i) = static_cast<float>(i);
  const FrameMatrix result = binned(frame, 4, 4, 2);
  EXPECT_EQ(result(0, 0), (0 + 1 + 4 + 5) / 4.0f);
  EXPECT_EQ(result(0, 5), result(0, 0));
  EXPECT_EQ(result(0, 15), (10 + 11 + 14 + 15) / 4.0f);
}

double value_of(const Report& report, const std::string& name) {
  for (const Metric& metric : report.metrics)
    if (metric.name == name) return metric.value;
  ADD_FAILURE() << "no metric " << name;
  return NAN;
}

TEST(PcaCommand, CompressesTheFramesOfAFile) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator_entry = data::pca_compress_generator();
  generator_entry
      .make(Options(generator_entry.options,
                    std::vector<std::string>{"window=32", "points=150", "width=50..60"}))
      ->write({folder / "frames.h5", 2, 300, &pool});
  const Entry& entry = find_baseline("pca-compress-128");
  const Options options(entry.options, std::vector<std::string>{"components=16", "basis_frames=250"});
  const Report report =
      entry.run({folder / "frames.h5", folder / "codes.h5", folder / "page.html", &pool}, options);
  EXPECT_LT(value_of(report, "orthonormality_error"), 1e-5);
  EXPECT_LT(value_of(report, "scaled_f16_error"), 1e-3);
  EXPECT_EQ(value_of(report, "compression_ratio"), 64);
  EXPECT_GT(std::filesystem::file_size(folder / "page.html"), 5000u);

  // Codes, basis and mean of the file give the frames back as well as reported.
  const data::Hdf5File in(folder / "frames.h5"), out(folder / "codes.h5");
  const Tensor frames = in.read("frame", ElementType::f32), codes = out.read("codes", ElementType::f32);
  const Tensor w = out.read("basis", ElementType::f32), mean = out.read("mean", ElementType::f32);
  EXPECT_EQ(w.shape(), (Shape{16, 32, 32}));
  EXPECT_EQ(codes.shape(), (Shape{300, 16}));
  double error = 0, signal = 0;
  for (std::int64_t frame = 250; frame < 300; ++frame)
    for (std::int64_t pixel = 0; pixel < 1024; ++pixel) {
      double value = mean.at(pixel);
      for (std::int64_t k = 0; k < 16; ++k) value += codes.at(frame * 16 + k) * w.at(k * 1024 + pixel);
      error += std::pow(frames.at(frame * 1024 + pixel) - value, 2);
      signal += std::pow(frames.at(frame * 1024 + pixel) - mean.at(pixel), 2);
    }
  EXPECT_NEAR(std::sqrt(error / signal) / value_of(report, "nrmse"), 1, 1e-4);
}

TEST(PcaCommand, NamesWhatIsWrong) {
  const ScratchFolder folder;
  ThreadPool pool(1);
  const Entry& entry = find_baseline("pca-compress-128");
  const auto message = [&](const std::vector<std::string>& assignments) -> std::string {
    try {
      entry.run({folder / "frames.h5", {}, {}, &pool}, Options(entry.options, assignments));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  data::Hdf5Writer file(folder / "frames.h5");
  file.write("frame", Tensor(ElementType::u16, {5, 8, 8}));
  file.close();
  EXPECT_NE(message({}).find("64 components from 5 frames"), std::string::npos) << message({});
  data::Hdf5Writer other(folder / "frames.h5");
  other.write("image", Tensor(ElementType::u16, {5, 8, 8}));
  other.close();
  EXPECT_NE(message({}).find("no data set frame"), std::string::npos) << message({});
}

}  // namespace
}  // namespace superstep::baseline
