#include <gtest/gtest.h>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/csv.h"
#include "superstep/file/npy.h"
#include "superstep/file/tiff.h"
#include "superstep/physics/generator.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

BaselineRun solve(std::filesystem::path input, std::filesystem::path output = {},
                  std::vector<std::string> settings = {}) {
  return {"conductivity", std::move(input), std::move(output), {}, std::move(settings)};
}

// Stripes along the current, 0 and `white` by turns: half of the conductivity.
void write_laminate(const std::filesystem::path& path, std::uint8_t white) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 32 * 24; ++i) pixels.push_back(i / 32 / 4 % 2 ? 0 : white);
  data::TiffWriter writer(path, data::TiffCompression::lzw);
  writer.add_page(pixels, 32, 24);
  writer.add_page(pixels, 32, 24);
  writer.close();
}

TEST(ConductivityBaseline, SolvesAGeneratedFileAndFindsItsLabels) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto& entry = data::find_generator("conductivity");
  const std::vector<std::string> settings{"size=48"};
  entry.make(Options(entry.options, settings))->write({folder / "c.h5", 1, 12, &pool});
  const Report report =
      BaselineRun{"conductivity", folder / "c.h5", folder / "c.csv", folder / "c.html", {}}();
  EXPECT_LT(metric(report, "worst_error"), 1e-6);
  EXPECT_LT(metric(report, "electrode_mismatch"), 1e-6);
  EXPECT_GT(metric(report, "throughput"), 0);
  data::CsvReader table(folder / "c.csv");
  int rows = 0;
  for (; table.next(); ++rows) {
    const double ratio = table.number(table.column("ratio"));
    EXPECT_NEAR(ratio, table.number(table.column("sigma_eff")) / table.number(table.column("sigma")), 1e-12);
  }
  EXPECT_EQ(rows, 12);
  EXPECT_NE(read_text_file(folder / "c.html").find("current density"), std::string::npos);
}

TEST(ConductivityBaseline, ReadsTiffAndNumpyInAnyGreyLevels) {
  const ScratchFolder folder;
  for (std::uint8_t white : {1, 255}) {
    write_laminate(folder / "l.tif", white);
    solve(folder / "l.tif", folder / "l.csv", {"sigma=3"})();
    data::CsvReader table(folder / "l.csv");
    ASSERT_TRUE(table.next());
    EXPECT_NEAR(table.number(table.column("sigma_eff")), 1.5, 1e-8);
  }
  data::write_npy(folder / "l.npy", data::read_tiff(folder / "l.tif"));
  const Report report = solve(folder / "l.npy", folder / "n.csv", {"insulator=0.01"})();
  EXPECT_EQ(metric(report, "percolating"), 1);
  data::CsvReader table(folder / "n.csv");
  ASSERT_TRUE(table.next());
  EXPECT_NEAR(table.number(table.column("ratio")), 0.505, 1e-6);
}

TEST(ConductivityBaseline, GreyImagesNeedAThreshold) {
  const ScratchFolder folder;
  Tensor grey(ElementType::f32, {2, 8, 8});
  for (std::int64_t i = 0; i < grey.element_count(); ++i) grey.set(i, static_cast<double>(i / 8 % 8));
  data::write_npy(folder / "grey.npy", grey);
  expect_error(ErrorCode::bad_file, {"grey.npy", "is not binary", "--set threshold=VALUE"},
               solve(folder / "grey.npy"));
  solve(folder / "grey.npy", folder / "g.csv", {"threshold=1.5", "invert=yes"})();
  data::CsvReader table(folder / "g.csv");
  ASSERT_TRUE(table.next());
  EXPECT_NEAR(table.number(table.column("ratio")), 0.25, 1e-8);
}

TEST(ConductivityBaseline, RefusesOtherShapesAndNaN) {
  const ScratchFolder folder;
  data::write_npy(folder / "flat.npy", Tensor(ElementType::f32, {5}));
  expect_error(ErrorCode::bad_file, {"flat.npy", "has the shape [5]"}, solve(folder / "flat.npy"));
  data::write_npy(folder / "nan.npy", Tensor::full(ElementType::f32, {4, 4}, std::nan("")));
  expect_error(ErrorCode::bad_file, {"nan.npy"}, solve(folder / "nan.npy"));
  expect_error(ErrorCode::not_found, {"none.tif"}, solve(folder / "none.tif"));
}

}  // namespace
}  // namespace superstep::baseline
