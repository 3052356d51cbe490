// Results as files: what is written can be read again, by us and by the tools whose forms they are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/lab/compare/compare.h"
#include "superstep/lab/formats/mllog.h"
#include "superstep/lab/formats/system_json.h"
#include "superstep/lab/formats/table.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/lab/measure/quantities.h"
#include "superstep/record/result_json.h"
#include "tests/contains.h"
#include "tests/python.h"
#include "tests/sample_result.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

record::Result example(double scale = 1) {
  Measurement measurement{.warm_up_calls = 12, .samples = {}};
  for (int i = 0; i < 30; ++i) measurement.samples.push_back(scale * (0.1 + 0.001 * (i % 7)));
  record::Result result = sample_result();
  result.quantities.push_back(time_quantity("step_time", measurement));
  result.quantities.push_back(rate_quantity("flops_rate", 1e11, "FLOP/s", measurement));
  result.quantities.front().flags = {"drift +7 %, \"much\""};
  result.add("compile_time", 0.25, "s");
  return result;
}

// --- other tools'

TEST(GoogleBenchmark, HasItsMembersInOrderAndReadsBackExactly) {
  const record::Result result = example();
  const auto parsed = nlohmann::ordered_json::parse(write_google_benchmark({result}));
  EXPECT_EQ(parsed["context"]["json_schema_version"], 1);
  const auto& first = parsed["benchmarks"][0];
  std::vector<std::string> names;
  for (const auto& [name, value] : first.items()) names.push_back(name);
  const std::vector<std::string> expected{"name",
                                          "family_index",
                                          "per_family_instance_index",
                                          "run_name",
                                          "run_type",
                                          "repetitions",
                                          "repetition_index",
                                          "threads",
                                          "iterations",
                                          "real_time",
                                          "cpu_time",
                                          "time_unit",
                                          "flops"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(first["real_time"].get<double>(), result.find("step_time")->samples[0] * 1e3);
  EXPECT_EQ(parsed["benchmarks"].size(), 33U);  // 30 samples, mean, median, standard deviation
  EXPECT_EQ(parsed["benchmarks"][31]["aggregate_name"], "median");
}

TEST(GoogleBenchmark, ItsCompareToolTakesTwoFiles) {
  const std::filesystem::path tool = "/usr/share/benchmark/tools/compare.py",
                              other = "/usr/share/benchmark/compare.py";
  std::filesystem::path found;
  for (const auto& path : {tool, other, std::filesystem::path("/usr/bin/benchmark-compare")})
    if (std::filesystem::exists(path)) found = path;
  const std::string python = python_with("numpy, scipy");
  if (found.empty() || python.empty())
    GTEST_SKIP() << "Google Benchmark's compare.py was not found, or what it imports: tools/setup and "
                    "tools/setup-oracles install them";
  const auto folder =
      std::filesystem::temp_directory_path() / ("superstep_google_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.json") << write_google_benchmark({example()});
  std::ofstream(folder / "b.json") << write_google_benchmark({example(0.5)});
  const std::string command = "cd '" + folder.string() + "' && " + python + " '" + found.string() +
                              "' --no-color benchmarks a.json b.json >out.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream out(folder / "out.txt");
  const std::string text{std::istreambuf_iterator<char>(out), {}};
  EXPECT_TRUE(contains(text, "-0.5")) << text;  // half the time
  std::filesystem::remove_all(folder);
}

TEST(Csv, QuotesWhatNeedsIt) {
  const std::string text = write_csv({example()});
  EXPECT_TRUE(
      text.starts_with("id,source,place,workload,mode,machine,units,framework,precision,micro_batch,"));
  EXPECT_TRUE(contains(
      text, "gemm_k4-train-f32,superstep,measured,gemm_k4,train,cpu,1,superstep,f32,,2560,,,,step_time,"));
  EXPECT_TRUE(contains(text, "\"drift +7 %, \"\"much\"\"\"\n"));
  EXPECT_TRUE(contains(text, "compile_time,0.25,s,\n"));
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST(DeepBench, HasItsColumns) {
  record::Result infer = example(0.1);
  infer.mode = "infer";
  const std::string text = write_deepbench({example(), infer});
  EXPECT_EQ(text, "m n k a_t b_t precision time (usec)\n2560 2560 2560 n n f32 10300.000\n");
  EXPECT_EQ(write_deepbench({example()}),
            "m n k a_t b_t precision time (usec)\n2560 2560 2560 n n f32 n/a\n");
}

record::Result collective(std::int64_t count, double seconds, double wrong) {
  record::Result result{.command = "bench", .workload = "all_reduce", .mode = "collective", .units = 2};
  result.parameters = {{"bytes", 4 * count}, {"count", count}};
  result.program = {{"version", "0.1.0"}};
  for (const std::string place : {"out_of_place", "in_place"}) {
    result.add(place + "_time", seconds, "s");
    result.add(place + "_algbw", 4.0 * static_cast<double>(count) / seconds, "B/s");
    result.add(place + "_busbw", 4.0 * static_cast<double>(count) / seconds, "B/s");
    result.add(place + "_wrong", wrong, "");
  }
  return result;
}

TEST(NcclTable, HasTheColumnsOfNcclTests) {
  const std::string text = write_nccl_table({collective(16777216, 1234.5e-6, 0)});
  EXPECT_TRUE(
      contains(text,
               "\n    67108864      16777216     float     sum      -1   1234.5   54.36   54.36       0"
               "   1234.5   54.36   54.36       0\n"))
      << text;
  EXPECT_TRUE(contains(
      text, "#       size         count      type   redop    root     time   algbw   busbw  #wrong"));
  EXPECT_TRUE(contains(text, "# Out of bounds values : 0 OK\n"));
  EXPECT_TRUE(contains(text, "# Collective test concluded: all_reduce_perf\n"));
  EXPECT_TRUE(contains(text, "minBytes 67108864 maxBytes 67108864"));
}

TEST(NcclTable, SaysThatElementsAreWrong) {
  EXPECT_TRUE(contains(write_nccl_table({collective(1024, 1e-3, 3)}), "# Out of bounds values : 6 FAILED"));
  EXPECT_EQ(write_nccl_table({example()}), "");
}

TEST(NcclJson, IsTheTwinOfTheTable) {
  record::Result result = collective(16777216, 1234.5e-6, 3);
  result.created = "2026-01-31T12:00:00+00:00";
  result.config = {
      {"warmup", 5}, {"iterations", 7}, {"order", "by rank"}, {"arguments", {"bench", "all-reduce"}}};
  result.environment = {{"host", {{"hostname", "here"}}},
                        {"software", {{"settings", {{"OMP_NUM_THREADS", "2"}}}}}};
  const auto nccl = nlohmann::json::parse(write_nccl_json({result, example()}));
  const std::vector<std::string> members{"version", "start_time",    "args",
                                         "env",     "nccl_version",  "config",
                                         "results", "out_of_bounds", "average_bus_bandwidth",
                                         "end_time"};
  for (const std::string& member : members) EXPECT_TRUE(nccl.contains(member)) << member;
  EXPECT_EQ(nccl.size(), members.size());
  EXPECT_EQ(nccl["version"], 3);
  EXPECT_EQ(nccl["env"]["OMP_NUM_THREADS"], "2");
  EXPECT_EQ(nccl["config"]["maximum_bytes"], 67108864);
  EXPECT_EQ(nccl["config"]["devices"].size(), 2U);
  EXPECT_EQ(nccl["config"]["devices"][1]["hostname"], "here");
  ASSERT_EQ(nccl["results"].size(), 1U);
  const auto& row = nccl["results"][0];
  EXPECT_EQ(row["actual_iterations"], 7);
  EXPECT_EQ(row["experiment_name"], "by rank");
  EXPECT_NEAR(row["in_place"]["time"].get<double>(), 1234.5, 1e-9);
  EXPECT_NEAR(row["out_of_place"]["bus_bw"].get<double>(), 54.36, 0.01);
  EXPECT_EQ(nccl["out_of_bounds"]["count"], 6);
  EXPECT_EQ(nccl["out_of_bounds"]["okay"], false);
  EXPECT_EQ(write_nccl_json({example()}), "");
}

TEST(SystemJson, HasItsMembersAndNoOthersAllOfThemTexts) {
  const nlohmann::json environment = {
      {"program", {{"version", "0.1.0"}, {"git", nullptr}}},
      {"host",
       {{"hostname", "here"},
        {"sockets", 2},
        {"cores", 64},
        {"hardware_threads", 128},
        {"processor", "a processor"},
        {"clock", {{"nominal", 2.5e9}, {"maximum", nullptr}}},
        {"caches", {{{"type", "data or unified"}, {"level", 2}, {"size", 1048576}, {"count", 64}}}},
        {"memory_bytes", std::int64_t{1} << 38}}},
      {"software", {{"system", "Linux"}, {"kernel", "6.1"}}}};
  const auto system = nlohmann::json::parse(write_system_json(environment, {{"host_networking", "none"}}));
  EXPECT_EQ(system.size(), 33U);
  for (const auto& [name, value] : system.items()) EXPECT_TRUE(value.is_string()) << name;
  EXPECT_EQ(system["host_processor_core_count"], "32");
  EXPECT_EQ(system["host_processor_vcpu_count"], "64");
  EXPECT_EQ(system["host_processor_frequency"], "nominal 2.50 GHz");
  EXPECT_EQ(system["host_processor_caches"], "L2 1024 KiB x 64");
  EXPECT_EQ(system["host_memory_capacity"], "256.0 GiB");
  EXPECT_EQ(system["host_networking"], "none");
  EXPECT_EQ(system["framework"], "superstep 0.1.0");
  EXPECT_EQ(system["operating_system"], "Linux 6.1");
  EXPECT_EQ(system["cooling"], "");
  EXPECT_THROW(write_system_json(environment, {{"coolin", "water"}}), Error);
}

TEST(MlLog, HasLinesOfItsForm) {
  const std::string text = write_mllog({example()});
  std::istringstream lines(text);
  std::vector<std::string> keys;
  std::int64_t last = 0;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(line.starts_with(":::MLLOG "));
    const auto object = nlohmann::ordered_json::parse(line.substr(9));
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back(name);
    EXPECT_EQ(names,
              (std::vector<std::string>{"namespace", "time_ms", "event_type", "key", "value", "metadata"}));
    EXPECT_TRUE(object["metadata"].contains("file") && object["metadata"].contains("lineno"));
    EXPECT_GE(object["time_ms"].get<std::int64_t>(), last);
    last = object["time_ms"];
    keys.push_back(object["key"]);
  }
  EXPECT_EQ(keys.front(), "init_start");
  EXPECT_EQ(keys.back(), "run_stop");
  EXPECT_TRUE(contains(text, "\"status\":\"success\""));
}

TEST(MlLog, KnowsTimeZones) {
  EXPECT_EQ(milliseconds_of("1970-01-01T01:00:00+01:00"), 0);
  EXPECT_EQ(milliseconds_of("2021-06-15T19:49:10+00:00"), 1623786550000);
  EXPECT_EQ(milliseconds_of("yesterday"), 0);
}

TEST(ChromeTrace, LaysStepsBesideEachOther) {
  record::Result result = example();
  result.timeline = {{"conv1", "compute", 1, 0, 125.5e-6, 236027904, 1204224},
                     {"relu", "compute", 1, 125.5e-6, 1e-6}};
  const json trace = json::parse(write_chrome_trace({result}));
  const json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["name"], "process_name");
  EXPECT_EQ(events[2]["ph"], "X");
  EXPECT_NEAR(events[2]["dur"].get<double>(), 125.5, 1e-9);
  EXPECT_NEAR(events[3]["ts"].get<double>(), 125.5, 1e-9);
  EXPECT_EQ(json::parse(write_chrome_trace({example()}))["traceEvents"].size(), 0U);
}

// Results of others: members may be of any kind.
TEST(Writers, TakeMembersOfAnyKind) {
  const std::vector<record::Result> results = record::read_results(
      R"({"schema": "superstep-result/1", "created": "noon", "workload": {"mode": "collective",
          "parameters": {"bytes": "many", "kind": 7}}, "machine": {"units": -3},
          "config": {"batch": "all", "precision": 32, "order": [], "sweep": "yes", "arguments": 1},
          "environment": {"host": {"caches": [1, {"level": "x"}], "clock": 3, "load_average": {}}, "software": []},
          "metrics": {"step_time": {"value": 1e300, "samples": [1e300, -1e300], "calls_per_sample": "two"},
                      "out_of_place_busbw": {"value": null}, "compile_time": {"value": -1e308}}})",
      "here");
  for (const Writer& writer : writers()) EXPECT_NO_THROW(writer.write(results)) << writer.name;
  EXPECT_NO_THROW(write_system_json(results[0].environment, {}));
  EXPECT_NO_THROW(comparison_table(compare(results, results, {.resamples = 10})));
}

TEST(Writers, AreFoundByName) {
  EXPECT_EQ(find_writer("csv").write, &write_csv);
  EXPECT_THROW(find_writer("xml"), Error);
}

record::Result with_the_papers_formula() {
  record::Result result = example();
  result.add("flops_emani2022", 2e11, "FLOP/s");
  return result;
}

TEST(Table, ShowsTheFormulaOfThePaperAndWhatWasNotRun) {
  record::Result refused = example();
  refused.quantities.clear();
  refused.config["not_run"] = "no kernel";
  const std::string text = result_table({with_the_papers_formula(), refused});
  EXPECT_TRUE(contains(text, "paper's formula"));
  EXPECT_TRUE(contains(text, "200 GFLOP/s"));
  EXPECT_TRUE(contains(text, "not run: no kernel"));
  EXPECT_TRUE(contains(text, "103 ms"));
}

TEST(Table, LeavesOutColumnsInWhichNothingStands) {
  EXPECT_FALSE(contains(result_table({example()}), "paper's formula"));
  EXPECT_TRUE(contains(result_table({example(), with_the_papers_formula()}), "paper's formula"));
}

// --- comparing

TEST(Compare, TellsADifferenceFromNoise) {
  const Comparison same = compare({example()}, {example(1.0001)}, {.metrics = {"step_time"}});
  ASSERT_EQ(same.rows.size(), 1U);
  EXPECT_EQ(same.rows[0].verdict, Verdict::same);
  EXPECT_LE(*same.rows[0].low, 1);
  EXPECT_GE(*same.rows[0].high, 1);
  const Comparison slower = compare({example()}, {example(1.2)}, {.metrics = {"step_time"}});
  EXPECT_EQ(slower.rows[0].verdict, Verdict::worse);
  EXPECT_NEAR(slower.rows[0].ratio, 1.2, 1e-9);
  EXPECT_EQ(compare({example()}, {example(0.8)}, {.metrics = {"step_time"}}).rows[0].verdict,
            Verdict::better);
}

TEST(Compare, ARateThatFallsIsWorse) {
  for (const ComparedRow& row : compare({example()}, {example(1.3)}).rows)
    EXPECT_EQ(row.verdict, Verdict::worse) << row.metric;
}

TEST(Compare, SingleValuesHaveNoNoiseToJudgeBy) {
  const auto rows = compare({example()}, {example()}, {.metrics = {"compile_time"}}).rows;
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].verdict, Verdict::unknown);
}

TEST(Compare, MatchesById) {
  record::Result other = example(), third = example();
  other.id = "other";
  third.config["threads"] = 4;
  const Comparison comparison = compare({example(), other}, {third, third});
  EXPECT_EQ(comparison.only_before, std::vector<std::string>{"other"});
  ASSERT_FALSE(comparison.rows.empty());
  EXPECT_EQ(comparison.rows[0].differences, std::vector<std::string>{"threads 2 -> 4"});
  EXPECT_TRUE(contains(comparison_table(comparison), "only before: other"));
  EXPECT_TRUE(contains(comparison_table({}), "nothing to compare"));
}

TEST(Compare, KnowsWhichWayIsBetter) {
  EXPECT_FALSE(higher_is_better("step_time", "s"));
  EXPECT_FALSE(higher_is_better("error_px_mean", "px"));
  EXPECT_FALSE(higher_is_better("loss", ""));
  EXPECT_FALSE(higher_is_better("rmse", ""));
  EXPECT_FALSE(higher_is_better("phase_mae", "rad"));
  EXPECT_TRUE(higher_is_better("throughput", "samples/s"));
  EXPECT_TRUE(higher_is_better("memory_utilization", ""));
}

}  // namespace
}  // namespace superstep::lab
