// The page of benchmark results, and published rows beside ours.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/lab/bench/baseline.h"
#include "superstep/lab/measure/quantities.h"
#include "superstep/lab/report/bench_report.h"
#include "tests/browser.h"
#include "tests/contains.h"
#include "tests/sample_result.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

record::Result product(const std::string& mode, std::int64_t batch, double seconds) {
  Measurement measurement;
  for (int i = 0; i < 30; ++i) measurement.samples.push_back(seconds * (1 + 0.01 * (i % 5)));
  record::Result result = sample_result(mode, batch);
  result.quantities = {time_quantity("step_time", measurement),
                       rate_quantity("throughput", 2560, "samples/s", measurement),
                       rate_quantity("flops_rate", 3.3e10, "FLOP/s", measurement),
                       rate_quantity("bandwidth", 1e8, "B/s", measurement),
                       rate_quantity("memory_utilization", 1e-3, "", measurement)};
  result.add("compute_utilization", 0.5, "");
  result.add("peak_flops", 6.4e11, "FLOP/s");
  return result;
}

class BenchReports : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("superstep_bench_report_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "published.csv")
        << "id,source,place,workload,mode,machine,units,framework,precision,micro_batch,global_batch,"
           "replicas,"
           "pipeline_stages,grad_accum,metric,value,unit,note\n"
           "util,Paper,T1,gemm_k4,train,gc200,1,tf,fp16,,,,,,compute_utilization,80,%,\n"
           "sheet,Sheet,T2,gemm_2560x2560x2560_nn,train,v100,1,cublas,fp32,,,,,,time,25,ms,\n"
           "other,Paper,T1,gemm_k1,train,gc200,1,tf,fp16,,,,,,compute_utilization,80,%,\n";
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(BenchReports, SetPublishedNumbersBesideOurs) {
  const auto ratios = compare_with_published({product("train", 2560, 0.2), product("infer", 2560, 0.05)},
                                             folder_ / "published.csv");
  ASSERT_EQ(ratios.size(), 2U);
  EXPECT_EQ(ratios[0].id, "util");
  EXPECT_NEAR(ratios[0].ratio, 50.0 / 80, 1e-12);
  EXPECT_EQ(ratios[1].id, "sheet");  // a forward product, whatever the sheet calls it
  EXPECT_NEAR(ratios[1].ours, 51, 1e-9);
}

TEST_F(BenchReports, DoNotCompareAnotherBatch) {
  EXPECT_TRUE(compare_with_published({product("train", 64, 0.2)}, folder_ / "published.csv").empty());
}

TEST_F(BenchReports, AreOnePageWithoutScripts) {
  record::Result other = product("train", 1280, 0.1);
  const BenchReport report =
      make_bench_report({{product("train", 2560, 0.2), other}, folder_ / "published.csv", folder_ / "out"});
  const std::string page = read_text_file(report.page);
  for (const char* part : {"Roofline", "Batch sweeps", "Distribution of samples", "Beside published numbers",
                           "0.625", "The machine had other work to do"})
    EXPECT_TRUE(contains(page, part));
  EXPECT_EQ(page.find("<script"), page.rfind("<script")) << "the page's own alone";
  EXPECT_EQ(page.find("http://"), page.find("http://www.w3.org"));  // nothing is fetched
  EXPECT_TRUE(contains(report.text, "util"));
}

TEST_F(BenchReports, AreReadableInABrowser) {
  if (!test::has_browser()) GTEST_SKIP() << "chromium is not installed";
  record::Result other = product("train", 1280, 0.1);
  const std::string html = read_text_file(
      make_bench_report({{product("train", 2560, 0.2), other}, folder_ / "published.csv", folder_ / "out"})
          .page);
  for (const auto& [width, scheme] :
       {std::pair(1100, test::Scheme::light), std::pair(400, test::Scheme::dark)}) {
    const nlohmann::json page = test::shown(html, width, scheme);
    test::expect_readable(page, scheme);
    if (!page.is_object()) continue;
    EXPECT_GE(page["drawings"].size(), 3U);  // roofline, sweep, histograms
    EXPECT_GE(page["tables"].get<int>(), 2);
  }
}

record::Result scaled(std::int64_t ranks, double rate) {
  record::Result result{.command = "scale", .id = fmt::format("mlp-weak-{}ranks", ranks), .workload = "mlp"};
  result.mode = "train, weak scaling";
  result.units = ranks;
  result.config = {{"batch", 64 * ranks}, {"precision", "f32"}};
  result.add("throughput", rate, "samples/s");
  result.add("scaling_efficiency", rate / static_cast<double>(ranks) / 100, "");
  result.add("communication_time", 1e-3, "s");
  return result;
}

TEST_F(BenchReports, ShowScalingServingAndCollectives) {
  record::Result served = product("infer", 2560, 0.05);
  served.add("poisson_latency_mean", 2e-3, "s");
  served.add("poisson_latency_p99", 7e-3, "s");
  record::Result collective{.command = "bench", .workload = "all_reduce", .mode = "collective", .units = 2};
  std::vector<record::Result> results{served, scaled(1, 100), scaled(2, 190)};
  for (const std::int64_t bytes : {1024, 4096}) {
    collective.parameters = {{"bytes", bytes}};
    collective.quantities.clear();
    collective.add("in_place_busbw", 1e6 * static_cast<double>(bytes), "B/s");
    results.push_back(collective);
  }
  const std::string page = read_text_file(make_bench_report({results, {}, folder_ / "out"}).page);
  for (const char* part : {"Scaling over ranks", "95.0 %", "exchange a step", ">1 ms<", "Serving under load",
                           ">7 ms<", "Collectives", "bytes of a rank"})
    EXPECT_TRUE(contains(page, part)) << part;
}

TEST_F(BenchReports, DoNotShowTheRepeatOfTheFirstAsAPoint) {
  record::Result first = product("infer", 2560, 0.05), again = product("infer", 2560, 0.06);
  mark_as_baseline(again, first);
  const auto once = compare_with_published({first}, folder_ / "published.csv");
  const auto twice = compare_with_published({first, again}, folder_ / "published.csv");
  EXPECT_EQ(twice.size(), once.size());
  const std::string page = read_text_file(make_bench_report({{first, again}, {}, folder_ / "out"}).page);
  EXPECT_TRUE(contains(page, "the machine drifted: +20.0 %"));
  EXPECT_EQ(page.find("gemm_k4-infer-f32-again"), std::string::npos);  // no histogram of its own
}

TEST_F(BenchReports, TakeTheResultAtThePublishedBatchElseTheBest) {
  std::ofstream(folder_ / "rates.csv")
      << "id,source,place,workload,mode,machine,units,framework,precision,micro_batch,global_batch,replicas,"
         "pipeline_stages,grad_accum,metric,value,unit,note\n"
         "same,Paper,T1,net,train,a,1,tf,fp32,,64,,,,throughput,1000,samples/s,\n"
         "best,Paper,T1,net,train,b,1,tf,fp32,,512,,,,throughput,1000,samples/s,\n";
  std::vector<record::Result> results;
  for (const auto& [batch, rate] : {std::pair{16, 30.0}, {64, 20.0}, {128, 10.0}}) {
    record::Result result{
        .command = "bench", .id = fmt::format("b{}", batch), .workload = "net", .mode = "train"};
    result.config = {{"batch", batch}, {"precision", "f32"}};
    result.add("throughput", rate, "samples/s");
    results.push_back(result);
  }
  const auto ratios = compare_with_published(results, folder_ / "rates.csv");
  ASSERT_EQ(ratios.size(), 2U);
  EXPECT_EQ(ratios[0].result, "b64");
  EXPECT_EQ(ratios[1].result, "b16");
}

TEST_F(BenchReports, RefuseToBeEmpty) {
  EXPECT_THROW(make_bench_report({{}, {}, folder_}), Error);
  EXPECT_THROW(compare_with_published({product("train", 1, 1)}, folder_ / "none.csv"), Error);
}

}  // namespace
}  // namespace superstep::lab
