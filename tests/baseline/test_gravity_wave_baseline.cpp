#include <gtest/gtest.h>

#include <cmath>

#include "superstep/baseline/flow/gravity_wave.h"
#include "superstep/file/hdf5/hdf5.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

BaselineRun with(const std::filesystem::path& input, const std::vector<std::string>& options) {
  return {"gravity-wave-drag", input, {}, {}, options};
}

TEST(GravityWaveBaseline, IsItsOwnTruthAndFewWavesAreWorse) {
  const ScratchFolder folder;
  generate("gravity-wave-drag", folder / "air.h5", 1500);
  const Report all = with(folder / "air.h5", {})(),
               few = with(folder / "air.h5", {"azimuths=4", "speeds=6"})(),
               line = with(folder / "air.h5", {"method=line"})();
  EXPECT_GT(metric(all, "r2"), 0.999999);
  EXPECT_LT(metric(few, "r2"), 0.99);
  EXPECT_GT(metric(few, "r2"), metric(line, "r2"));
  EXPECT_LT(metric(line, "r2"), 0.8);
  EXPECT_GT(metric(all, "throughput"), 0);
}

TEST(GravityWaveBaseline, WritesWhatItFound) {
  const ScratchFolder folder;
  generate("gravity-wave-drag", folder / "air.h5", 30, {"levels=21"});
  BaselineRun{"gravity-wave-drag", folder / "air.h5", folder / "drag.h5", folder / "page.html", {}}();
  const data::Hdf5File truth(folder / "air.h5"), found(folder / "drag.h5");
  for (const char* name : {"drag_u", "drag_v"}) {
    const Tensor a = truth.read(name, ElementType::f32), b = found.read(name, ElementType::f32);
    ASSERT_EQ(a.shape(), b.shape());
    for (std::int64_t i = 0; i < a.element_count(); ++i)
      EXPECT_NEAR(a.at(i), b.at(i), 1e-5 * std::abs(a.at(i)) + 1e-9);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "page.html"));
}

TEST(GravityWaveBaseline, RefusesFilesThatAreNoColumns) {
  const ScratchFolder folder;
  data::Hdf5Writer file(folder / "short.h5");
  file.write("u", Tensor(ElementType::f32, {3, 63}));
  file.write("v", Tensor(ElementType::f32, {3, 62}));
  file.close();
  expect_error(ErrorCode::bad_file, {"short.h5", "'v'"}, with(folder / "short.h5", {}));
  generate("gravity-wave-drag", folder / "two.h5", 2);
  expect_error(ErrorCode::bad_file, {"two.h5", "too few columns"}, with(folder / "two.h5", {"method=line"}));
}

TEST(DragScore, IsAMeanOverLayersWithDrag) {
  DragRows truth(3, 4), found(3, 4);
  truth << 0, 1, 0, 10, 0, 2, 0, 20, 0, 3, 0, 30;
  found = truth;
  found.col(3).array() += 10;  // 1 - 300 / 200
  const DragScore score = score_drag(truth, found);
  EXPECT_NEAR(score.r2, (1 - 0.5) / 2, 1e-12);
  EXPECT_NEAR(score.rmse, std::sqrt(100 / 2.0), 1e-6);
  EXPECT_TRUE(std::isnan(score.r2_u[0]));
  EXPECT_EQ(score.r2_u[1], 1);
}

}  // namespace
}  // namespace superstep::baseline
