#include <gtest/gtest.h>

#include "superstep/baseline/imaging/image_pca.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/idx.h"
#include "superstep/file/npy.h"
#include "superstep/physics/generator.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

TEST(ImagePca, PsnrOfAKnownError) {
  EXPECT_NEAR(psnr(1e-3), 30, 1e-12);
  EXPECT_GT(psnr(0), 1e300);
}

TEST(ImagePca, MoreValuesGiveABetterDigitInEveryFormat) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = data::find_generator("image-autoencoder").make(Options({}, {}));
  generator->write({folder / "digits.h5", 1, 300, &pool});
  generator->write({folder / "t-images-idx3-ubyte", 1, 300, &pool});
  const auto with = [&](const char* file, const char* values) {
    return BaselineRun{"image-autoencoder", folder / file, folder / "r.h5", folder / "p.html", {values}}();
  };
  const double few = metric(with("digits.h5", "values=8"), "psnr"),
               many = metric(with("digits.h5", "values=40"), "psnr");
  EXPECT_GT(few, 9);
  EXPECT_GT(many, few + 2);
  EXPECT_NEAR(metric(with("t-images-idx3-ubyte", "values=40"), "psnr"), many, 1e-6);
  EXPECT_EQ(data::Hdf5File(folder / "r.h5").info("recon").shape, (Shape{300, 28, 28}));
  EXPECT_TRUE(std::filesystem::exists(folder / "p.html"));
}

TEST(ImagePca, RefusesASingleImageAndTooManyValues) {
  const ScratchFolder folder;
  data::write_npy(folder / "one.npy", Tensor(ElementType::f32, {1, 4, 4}));
  data::write_npy(folder / "five.npy", Tensor(ElementType::f32, {5, 4, 4}));
  expect_error(ErrorCode::bad_file, {"one.npy", "two images"},
               BaselineRun{"image-autoencoder", folder / "one.npy", {}, {}, {}});
  expect_error(ErrorCode::invalid_argument, {"values"},
               BaselineRun{"image-autoencoder", folder / "five.npy", {}, {}, {}});
}

}  // namespace
}  // namespace superstep::baseline
