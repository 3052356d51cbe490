#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/baseline/digits_pca.h"
#include "superstep/data/generator.h"
#include "superstep/data/hdf5.h"
#include "superstep/data/idx.h"
#include "superstep/data/npy.h"
#include "tests/baseline/run_baseline.h"
#include "tests/data/expect_error.h"
#include "tests/data/scratch.h"

namespace superstep::baseline {
namespace {

Eigen::MatrixXd normal(Eigen::Index rows, Eigen::Index columns, std::uint64_t index) {
  RandomStream random(1, index);
  Eigen::MatrixXd matrix(rows, columns);
  for (double& value : matrix.reshaped()) value = random.normal();
  return matrix;
}

TEST(DigitsPca, BasisIsOrthonormalAndEnergiesFall) {
  const PrincipalComponents components = principal_components(normal(20, 60, 0));
  EXPECT_LT((components.basis.transpose() * components.basis - Eigen::MatrixXd::Identity(20, 20)).norm(),
            1e-10);
  for (Eigen::Index k = 1; k < 20; ++k) EXPECT_LE(components.energy[k], components.energy[k - 1] + 1e-12);
}

TEST(DigitsPca, DataOfRankRIsReproducedFromRValues) {
  const Eigen::MatrixXd images = normal(30, 3, 0) * normal(3, 50, 1);
  const PrincipalComponents components = principal_components(images);
  EXPECT_LT((reconstruct(components, images, 3) - images).norm(), 1e-9 * images.norm());
  EXPECT_GT((reconstruct(components, images, 2) - images).norm(), 1e-2 * images.norm());
}

TEST(DigitsPca, ErrorIsTheEnergyLeftOut) {
  const Eigen::MatrixXd images = normal(10, 200, 2);
  const PrincipalComponents components = principal_components(images);
  const double error = (reconstruct(components, images, 4) - images).squaredNorm() / 200;
  EXPECT_NEAR(error, components.energy.tail(6).sum(), 1e-9);
  EXPECT_NEAR(psnr(1e-3), 30, 1e-12);
}

// Digits at half their size: the covariance of 784 pixels takes seconds.
Tensor small_digits() {
  ThreadPool pool(2);
  const auto generator = data::find_generator("image-autoencoder").make(Options({}, {}));
  const Tensor whole = data::generate_in_memory(*generator, 1, 0, 400, pool)[0];
  Tensor halved(ElementType::u8, {400, 14, 14});
  for (std::int64_t i = 0; i < halved.element_count(); ++i) {
    const std::int64_t at = i / 196 * 784 + i % 196 / 14 * 56 + i % 14 * 2;
    halved.set(i, (whole.at(at) + whole.at(at + 1) + whole.at(at + 28) + whole.at(at + 29)) / 4);
  }
  return halved;
}

TEST(PcaBaseline, MoreValuesGiveABetterDigitInEveryFormat) {
  const ScratchFolder folder;
  const Tensor digits = small_digits();
  data::write_npy(folder / "digits.npy", digits);
  data::IdxWriter idx(folder / "t-images-idx3-ubyte", digits.shape());
  idx.append(digits.as<std::uint8_t>());
  idx.close();
  const auto with = [&](const char* file, const char* values) {
    return BaselineRun{"image-autoencoder", folder / file, folder / "r.h5", folder / "p.html", {values}}();
  };
  const double few = metric(with("digits.npy", "values=10"), "psnr"),
               many = metric(with("digits.npy", "values=40"), "psnr");
  EXPECT_GT(few, 9);
  EXPECT_GT(many, few + 2);
  EXPECT_NEAR(metric(with("t-images-idx3-ubyte", "values=40"), "psnr"), many, 1e-6);
  EXPECT_EQ(data::Hdf5File(folder / "r.h5").info("recon").shape, (Shape{400, 14, 14}));
  data::write_npy(folder / "one.npy", Tensor(ElementType::f32, {1, 4, 4}));
  expect_error(ErrorCode::bad_file, {"one.npy", "two images"},
               BaselineRun{"image-autoencoder", folder / "one.npy", {}, {}, {}});
}

}  // namespace
}  // namespace superstep::baseline
