// Requests for computing time: hours follow from steps, efficiency from throughputs, and nothing is said
// without where it is from.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/study/allocation/allocation.h"
#include "superstep/study/figures.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::study {
namespace {

Report report_of(const std::string& mode) {
  const Study study = parse_study(
      "title = \"t\"\nshows = \"s\"\n[[cells]]\nworkload = \"braggnn\"\nmode = \"" + mode +
          "\"\nmachine = \"a100-40gb\"\nunits = [1, 16]\nmetric = \"throughput\"\nunit = \"samples/s\"\n",
      "a.toml");
  Report report{.study = study, .cells = cells_of(study)};
  return report;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Allocations, CountUnitHours) {
  const Allocation allocation = allocation_of(report_of("train"), {.trainings = 3, .samples = 1e6});
  ASSERT_EQ(allocation.subjects.size(), 1U);
  const AllocationSubject& subject = allocation.subjects[0];
  ASSERT_EQ(subject.strong.size(), 5U) << "1 to 16 units";
  ASSERT_EQ(subject.weak.size(), 5U);
  EXPECT_EQ(subject.weak[2].batch, 4 * subject.batch);
  EXPECT_EQ(subject.strong[2].batch, subject.batch);
  EXPECT_DOUBLE_EQ(subject.strong[0].efficiency, 1);
  for (const ScalingPoint& point : subject.strong) {
    if (!point.step.value) continue;
    EXPECT_DOUBLE_EQ(point.samples, static_cast<double>(subject.batch))
        << "an update of another batch is another training";
    EXPECT_NEAR(point.throughput, point.samples / *point.step.value, 1e-6 * point.throughput);
    EXPECT_LT(point.efficiency, 1.01);
    EXPECT_LT(point.step.low, *point.step.value);
    EXPECT_GT(point.step.high, *point.step.value);
    EXPECT_GT(point.memory, 0);
  }
  EXPECT_GT(subject.sample_bytes, 11 * 11 * 4) << "a patch in f32, and its target";
  EXPECT_DOUBLE_EQ(subject.unit_power, 400);
  const nlohmann::json json = json_of(allocation);
  const nlohmann::json& hours = json["subjects"][0]["unit_hours"][0];
  EXPECT_NEAR(hours["value"].get<double>(),
              1e6 / static_cast<double>(subject.batch) * *subject.strong[0].step.value / 3600, 1e-9);
}

TEST(Allocations, ArePagesAndPdf) {
  const ScratchFolder folder;
  const Allocation allocation = allocation_of(report_of("train"), {.trainings = 3, .samples = 1e6});
  write_allocation(allocation, folder / "");
  const std::string page = content_of(folder / "allocation.html"),
                    pdf = content_of(folder / "allocation.pdf");
  for (const char* const words : {"How sure this is", "Strong scaling", "Weak scaling",
                                  "braggnn on a100-40gb", "as it was asked for", "data sheet"})
    EXPECT_TRUE(contains(page, words));
  EXPECT_TRUE(contains(pdf, "(How sure this is) Tj"));
  EXPECT_TRUE(pdf.starts_with("%PDF-1.4"));
}

TEST(Allocations, NeedATraining) { EXPECT_THROW(allocation_of(report_of("infer"), {}), Error); }

}  // namespace
}  // namespace superstep::study
