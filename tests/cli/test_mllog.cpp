// The log of a training run as :::MLLOG lines: its structure, and what the MLPerf logging package's own
// compliance checker says of it where that is installed (pip install mlperf-logging pyyaml).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/cli/program.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* training =
    "train mlp --samples 4000 --batch 64 --epochs 60 --until rmse=0.12 --threads 1";

std::vector<Json> read_lines(const std::filesystem::path& path) {
  std::istringstream text(content_of(path));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    EXPECT_TRUE(line.starts_with(":::MLLOG ")) << line;
    lines.push_back(Json::parse(line.substr(9)));
  }
  return lines;
}

std::map<std::string, int> count_keys(const std::vector<Json>& lines) {
  std::map<std::string, int> counts;
  for (const Json& line : lines) ++counts[line["key"].get<std::string>()];
  return counts;
}

std::size_t place_of(const std::vector<Json>& lines, const std::string& key) {
  const auto found = std::ranges::find(lines, Json(key), [](const Json& line) { return line["key"]; });
  EXPECT_NE(found, lines.end()) << key;
  return static_cast<std::size_t>(found - lines.begin());
}

// Every interval of an epoch is closed before the next of its name begins.
void expect_paired(const std::vector<Json>& lines, const std::string& name) {
  std::int64_t open = 0;
  for (const Json& line : lines) {
    if (line["key"] == name + "_start") {
      EXPECT_EQ(open, 0) << name;
      EXPECT_EQ(line["event_type"], "INTERVAL_START");
      open = line["metadata"]["epoch_num"];
    } else if (line["key"] == name + "_stop") {
      EXPECT_EQ(line["metadata"]["epoch_num"], open) << name;
      EXPECT_EQ(line["event_type"], "INTERVAL_END");
      open = 0;
    }
  }
  EXPECT_EQ(open, 0) << name;
}

TEST(TrainingLog, TellsARunFromItsFirstTouchOfDataToItsEnd) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", std::string(training) + " --mllog log.txt --json run.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const std::vector<Json> lines = read_lines(folder / "log.txt");
  const auto counts = count_keys(lines);
  for (const char* once :
       {"cache_clear", "init_start", "init_stop", "run_start", "run_stop", "submission_benchmark",
        "submission_org", "submission_platform", "submission_division", "submission_status", "seed",
        "global_batch_size", "train_samples", "eval_samples", "number_of_nodes", "accelerators_per_node"})
    EXPECT_EQ(counts.contains(once) ? counts.at(once) : 0, 1) << once;
  EXPECT_LT(place_of(lines, "init_start"), place_of(lines, "init_stop"));
  EXPECT_LT(place_of(lines, "init_stop"), place_of(lines, "run_start"));
  EXPECT_LT(place_of(lines, "run_start"), place_of(lines, "epoch_start"));
  EXPECT_EQ(place_of(lines, "run_stop"), lines.size() - 1);
  EXPECT_EQ(lines.back()["metadata"]["status"], "success");
  EXPECT_EQ(lines[place_of(lines, "submission_benchmark")]["value"], "mlp");
  EXPECT_EQ(lines[place_of(lines, "cache_clear")]["value"], false);  // nothing was cleared: say so
  expect_paired(lines, "epoch");
  expect_paired(lines, "eval");
  std::int64_t last = 0;
  for (const Json& line : lines) {
    EXPECT_GE(line["time_ms"].get<std::int64_t>(), last);
    last = line["time_ms"];
  }
}

TEST(TrainingLog, HoldsTheQualityThatTheRunReports) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", std::string(training) + " --mllog log.txt --json run.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const auto result = nlohmann::json::parse(content_of(folder / "run.json"));
  Json last;
  for (const Json& line : read_lines(folder / "log.txt"))
    if (line["key"] == "eval_error") last = line;
  EXPECT_DOUBLE_EQ(last["value"], result["metrics"]["rmse"]["value"]);
  EXPECT_EQ(last["metadata"]["metric"], "rmse");
}

TEST(TrainingLog, OfARunThatFailsSaysAborted) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(
      folder / "", "train mlp --samples 2000 --learning-rate 1e30 --optimizer sgd --mllog log.txt");
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  const std::vector<Json> lines = read_lines(folder / "log.txt");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back()["key"], "run_stop");
  EXPECT_EQ(lines.back()["metadata"]["status"], "aborted");
}

TEST(TrainingLog, OfAResumedRunIsRefused) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "train mlp --resume run --mllog log.txt");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.errors.find("a resumed run cannot have a log of its whole time"), std::string::npos)
      << outcome.errors;
}

TEST(TrainingLog, ThatCannotBeWrittenIsRefusedBeforeTraining) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "train mlp --samples 2000 --mllog none/log.txt");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.errors.find("none/log.txt"), std::string::npos) << outcome.errors;
}

// --- the checker

int check(const std::string& python, const std::filesystem::path& folder, const std::string& file) {
  const std::string command = "cd '" + folder.string() + "' && " + python +
                              " -m mlperf_logging.compliance_checker --usage hpc "
                              "--ruleset 3.0.0 --werror " +
                              file + " >checked.txt 2>&1";
  return std::system(command.c_str());
}

// The checker knows four benchmarks and looks for a file of rules of the name it reads, so the workload's own
// name ends it. With one of the four in its place (CosmoFlow's, whose target is an error of 0.124) nothing is
// left to complain of.
TEST(TrainingLog, PassesTheComplianceCheckerButForItsName) {
  const std::string python = python_with("mlperf_logging.compliance_checker, yaml");
  if (python.empty()) GTEST_SKIP() << "MLPerf's checker was not found: tools/setup-oracles installs it";
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", std::string(training) + " --mllog log.txt").code, 0);
  EXPECT_NE(check(python, folder / "", "log.txt"), 0);
  EXPECT_NE(content_of(folder / "checked.txt").find("open_mlp.yaml"), std::string::npos)
      << content_of(folder / "checked.txt");
  std::string text = content_of(folder / "log.txt");
  text.replace(text.find("\"mlp\""), 5, "\"cosmoflow\"");
  std::ofstream(folder / "named.txt") << text;
  EXPECT_EQ(check(python, folder / "", "named.txt"), 0) << content_of(folder / "checked.txt");
  text.erase(text.find(":::MLLOG", text.find("init_stop") - 150), 9);  // a control: a line is lost
  std::ofstream(folder / "broken.txt") << text;
  EXPECT_NE(check(python, folder / "", "broken.txt"), 0);
}

}  // namespace
}  // namespace superstep
