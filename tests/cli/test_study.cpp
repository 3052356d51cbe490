// superstep study, as a user has it: killed at any moment it goes on, and what was measured once stays.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "superstep/base/text.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* study = R"toml(
title = "Two models on two machines"
shows = "What kills leave behind."
minutes = 0.02

[[cells]]
workload = ["mlp", "braggnn"]
mode = ["train", "infer"]
machine = ["gc200", "a100-40gb"]
micro_batch = [16, 64]
metric = "throughput"
unit = "samples/s"

[[measure]]
with = "bench"
least = 0.1

[[execute]]
workload = ["mlp"]
batch = 8
least = 0.1
)toml";

std::map<std::string, std::string> jobs_in(const fs::path& folder) {
  std::map<std::string, std::string> jobs;
  if (fs::exists(folder / "jobs"))
    for (const auto& entry : fs::directory_iterator(folder / "jobs"))
      if (entry.path().extension() == ".json")
        jobs[entry.path().filename().string()] = content_of(entry.path());
  return jobs;
}

// Cell by cell, without what was measured.
json shape_of(const fs::path& folder) {
  json report = json::parse(content_of(folder / "results.json"));
  for (json& cell : report["cells"]) {
    cell["measured"] = cell["measured"]["value"].is_number();
    cell.erase("measured_words");
  }
  report.erase("findings");
  return report;
}

TEST(StudyKills, LeaveWhatWasMeasuredAndGoOnBehindIt) {
  const ScratchFolder folder;
  std::ofstream(folder / "my.toml") << study;
  ASSERT_EQ(run_program(folder / "", "study my.toml --out whole --quiet").code, 0);
  std::map<std::string, std::string> before;
  int kills = 0;
  for (const char* const after : {"0.04", "0.3", "0.12", "0.5", "0.2", "0.7", "0.4"}) {
    const Outcome outcome =
        run_program(folder / "", "study my.toml --out s --quiet", std::string("timeout -s KILL ") + after);
    const auto now = jobs_in(folder / "s");
    for (const auto& [name, text] : before) EXPECT_EQ(now.at(name), text) << "measured again: " << name;
    before = now;
    if (outcome.code == 0) break;
    ++kills;
  }
  EXPECT_GE(kills, 1);
  ASSERT_EQ(run_program(folder / "", "study my.toml --out s --quiet").code, 0);
  EXPECT_EQ(shape_of(folder / "s"), shape_of(folder / "whole"));
  const auto now = jobs_in(folder / "s");
  for (const auto& [name, text] : before) EXPECT_EQ(now.at(name), text);
}

// What is done is done: killed while it looks again, or not, the page is the same to the byte.
TEST(StudyKills, DoNotChangeAPageThatIsDone) {
  const ScratchFolder folder;
  std::ofstream(folder / "my.toml") << study;
  ASSERT_EQ(run_program(folder / "", "study my.toml --out s --quiet").code, 0);
  const std::string page = content_of(folder / "s/index.html"),
                    results = content_of(folder / "s/results.json");
  for (const char* const after : {"0.01", "0.03", "0.05", "0.07", "0.09"})
    run_program(folder / "", "study my.toml --out s --quiet", std::string("timeout -s KILL ") + after);
  ASSERT_EQ(run_program(folder / "", "study my.toml --out s --quiet").code, 0);
  EXPECT_EQ(content_of(folder / "s/index.html"), page);
  EXPECT_EQ(content_of(folder / "s/results.json"), results);
}

constexpr const char* trained_study = R"toml(
title = "A model in two ways, and to a quality"
shows = "What kills leave behind."
minutes = 1

[[cells]]
workload = "mlp"
mode = "train"
machine = "cpu"
metric = "rmse"
unit = "1"
note = ["reverse", "forward"]

[[cells]]
workload = "mlp"
mode = "train"
machine = ["gc200", "a100-40gb"]
micro_batch = [32, 128]
metric = "steps_to_quality"
unit = "1"
note = "quality"

[[measure]]
with = "train"
note = ["reverse"]
steps = 400
samples = 2000
seeds = 2
least = 0.1

[[measure]]
with = "train"
note = ["forward"]
gradient = "forward:4"
steps = 400
samples = 2000
seeds = 2
least = 0.1

[[measure]]
with = "quality"
note = ["quality"]
workload = "mlp"
until = "rmse=0.4"
samples = 1500
epochs = 20
seeds = 2
least = 0.1
)toml";

// Trainings have no clock in what they come to: killed again and again, the page is the same to the byte but
// for the curves against time.
TEST(StudyKills, EndInThePageOfACallThatNobodyKilled) {
  const ScratchFolder folder;
  std::ofstream(folder / "my.toml") << trained_study;
  ASSERT_EQ(run_program(folder / "", "study my.toml --out whole --quiet").code, 0);
  int kills = 0;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const std::string after = fmt::format("timeout -s KILL {:.2f}", 0.05 + 0.06 * attempt);
    if (run_program(folder / "", "study my.toml --out s --quiet", after).code == 0) break;
    ++kills;
  }
  EXPECT_GE(kills, 2);
  ASSERT_EQ(run_program(folder / "", "study my.toml --out s --quiet").code, 0);
  EXPECT_EQ(content_of(folder / "s/results.json"), content_of(folder / "whole/results.json"));
  const auto without_curves = [&](const char* name) {
    const std::string page = content_of(folder / (std::string(name) + "/index.html"));
    const std::size_t begin = page.find("Quality against time"), end = page.find("All trainings, the noise");
    EXPECT_NE(begin, std::string::npos);
    EXPECT_NE(end, std::string::npos);
    return page.substr(0, begin) + page.substr(end);
  };
  EXPECT_EQ(without_curves("s"), without_curves("whole"));
}

constexpr const char* priced_study = R"toml(
title = "A model by price"
shows = "What a thousand dollars bring."
minutes = 0.02

[[price]]
machine = "gc200"
dollars = 8000
source = "nobody"

[[cells]]
workload = "braggnn"
mode = "train"
machine = "gc200"
micro_batch = 256
metric = "throughput_per_price"
unit = "samples/s per $1,000"
)toml";

TEST(StudyPrices, AreTakenFromTheCallOrRefused) {
  const ScratchFolder folder;
  std::ofstream(folder / "my.toml") << priced_study;
  const auto run = [&](const std::string& rest) {
    return run_program(folder / "", "study my.toml --quiet " + rest);
  };
  ASSERT_EQ(run("--out a").code, 0);
  ASSERT_EQ(run("--out b --price gc200=16000").code, 0);
  const auto value = [&](const char* name) {
    const json report = json::parse(content_of(folder / (std::string(name) + "/results.json")));
    return report["cells"].at(0)["predicted"]["value"].get<double>();
  };
  EXPECT_DOUBLE_EQ(value("a"), 2 * value("b"));
  EXPECT_TRUE(contains(content_of(folder / "b/index.html"), "given with --price"));
  const Outcome other = run("--out c --price h100=5");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.errors, "the study my has no price of it")) << other.errors;
  EXPECT_EQ(run("--out c --price gc200=5 --price gc200=6").code, 2);
  EXPECT_EQ(run("--out c --price gc200=0").code, 2);
  EXPECT_FALSE(fs::exists(folder / "c"));
  EXPECT_EQ(run_program(folder / "", "study list --price gc200=5").code, 2);
}

// Of data/published: what each row states, by its name. Columns before the note hold no commas of their own.
std::map<std::string, double> published_values() {
  std::map<std::string, double> values;
  for (const char* const name : {"results.csv", "further.csv"}) {
    std::ifstream file(fs::path(SUPERSTEP_SOURCE) / "data/published" / name);
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> cells = split(line, ',');
      constexpr std::size_t value = 15;  // of the columns
      if (!line.starts_with('#') && cells.size() > value && cells[value] != "value")
        values[cells[0]] = std::strtod(cells[value].c_str(), nullptr);
    }
  }
  return values;
}

std::vector<std::string> names_of_studies() {
  std::vector<std::string> names;
  std::ifstream file(fs::path(SUPERSTEP_SOURCE) / "studies/ORDER");
  for (std::string name; std::getline(file, name);)
    if (!name.empty()) names.push_back(name);
  return names;
}

class EveryStudy : public ::testing::TestWithParam<std::string> {};

// In a moment: one command, where it measures anything, and all predictions.
TEST_P(EveryStudy, RunsAndSaysWhatIsPublished) {
  static const std::map<std::string, double> values = published_values();
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "study " + GetParam() + " --minutes 0.0001 --out s --quiet --threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json report = json::parse(content_of(folder / "s/results.json"));
  const std::string page = content_of(folder / "s/index.html");
  std::size_t published = 0;
  for (const json& cell : report["cells"]) {
    if (cell["published"].is_null()) continue;
    ++published;
    const std::string name = cell["cell"];
    ASSERT_TRUE(values.contains(name)) << name;
    EXPECT_EQ(cell["published"]["value"].get<double>(), values.at(name)) << name;
    EXPECT_TRUE(contains(page, "<td>" + name + "</td>"));
  }
  if (published == 0) {
    EXPECT_TRUE(contains(page, "Nothing is published in numbers: "));
  }
}
INSTANTIATE_TEST_SUITE_P(, EveryStudy, ::testing::ValuesIn(names_of_studies()), [](const auto& each) {
  std::string name = each.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(StudyAllocation, IsWrittenBesideThePageOrRefused) {
  const ScratchFolder folder;
  std::ofstream(folder / "my.toml") << study;
  const Outcome outcome = run_program(
      folder / "", "study my.toml --out s --report allocation --trainings 5 --training-samples 1e6");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "5 trainings of 1,000,000 samples"));
  for (const char* const file : {"allocation.html", "allocation.pdf", "allocation.json"})
    EXPECT_TRUE(fs::exists(folder / "s" / file)) << file;
  EXPECT_EQ(run_program(folder / "", "study list --report allocation").code, 2);
  EXPECT_EQ(run_program(folder / "", "study all --report allocation").code, 2);
  EXPECT_EQ(run_program(folder / "", "study my.toml --trainings 5").code, 2);
  EXPECT_EQ(run_program(folder / "", "study my.toml --report nothing").code, 2);
}

TEST(StudyQuality, RefusesWhatCannotBeTrainedIn) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "study quality mlp --until rmse=0.5 --precision f32,int8 --out q");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.errors, "there is no precision 'int8'"));
  EXPECT_FALSE(fs::exists(folder / "q"));
}

// Its trainings go on with their bits, and what follows from them is the same.
TEST(StudyQuality, GoesOnWhereItWasKilled) {
  const ScratchFolder folder;
  const std::string call =
      "study quality mlp --until rmse=0.4 --batch 32,128 --samples 1500 --epochs 20 --seeds 2 --on a100-40gb "
      "--quiet --out ";
  ASSERT_EQ(run_program(folder / "", call + "whole").code, 0);
  int kills = 0;
  for (const char* const after : {"0.1", "0.25", "0.15", "0.4"})
    kills += run_program(folder / "", call + "s", std::string("timeout -s KILL ") + after).code != 0 ? 1 : 0;
  EXPECT_GE(kills, 1);
  ASSERT_EQ(run_program(folder / "", call + "s").code, 0);
  const auto without_clock = [&](const char* name) {
    json report = json::parse(content_of(folder / (std::string(name) + "/results.json")));
    for (json& training : report["trainings"]) {
      training.erase("seconds");
      for (json& epoch : training["curve"]) epoch.erase("seconds");
    }
    return report;
  };
  EXPECT_EQ(without_clock("s"), without_clock("whole"));
}

// A run of fewer samples is none of more, though it lies where that would.
TEST(StudyQuality, TrainsAnewWhatAnotherCallAskedOtherwise) {
  const ScratchFolder folder;
  const std::string call = "study quality mlp --until rmse=0.01 --batch 32 --seeds 1 --on a100-40gb --quiet ";
  ASSERT_EQ(run_program(folder / "", call + "--samples 500 --epochs 2 --out s").code, 0);
  ASSERT_EQ(run_program(folder / "", call + "--samples 1500 --epochs 3 --out s").code, 0);
  ASSERT_EQ(run_program(folder / "", call + "--samples 1500 --epochs 3 --out whole").code, 0);
  const auto training = [&](const char* name) {
    json one = json::parse(content_of(folder / (std::string(name) + "/results.json")))["trainings"].at(0);
    one.erase("seconds");
    one.erase("curve");
    return one;
  };
  EXPECT_EQ(training("s"), training("whole"));
}

// Trained, its noise measured, and machines ranked by it.
TEST(StudyQuality, IsWhatAdviceIsGivenBy) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(
      folder / "",
      "study quality mlp --until rmse=0.5 --batch 32,128 --samples 1000 --epochs 8 --seeds 2 --quiet");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json report = json::parse(content_of(folder / "study/quality-mlp/results.json"));
  ASSERT_EQ(report["noises"].size(), 4U) << "of two batches, at the first and the last step";
  for (const json& noise : report["noises"]) EXPECT_GT(noise["noise_scale"].get<double>(), 0);
  EXPECT_TRUE(contains(content_of(folder / "study/quality-mlp/index.html"), "The noise of gradients"));
  const Outcome ranked =
      run_program(folder / "", "advise mlp --for time-to-quality --on a100-40gb,gc200 --out a.html");
  ASSERT_EQ(ranked.code, 0) << ranked.errors;
  EXPECT_TRUE(contains(ranked.output, "mlp until rmse <= 0.5: measured steps of study/quality-mlp"));
  EXPECT_TRUE(fs::exists(folder / "a.html"));
  const Outcome without = run_program(
      folder / "", "advise mlp --for time-to-quality --on a100-40gb --samples 1000 --quality none");
  ASSERT_EQ(without.code, 0) << without.errors;
  EXPECT_TRUE(contains(without.errors, "superstep study quality mlp --until METRIC=VALUE measures"));
  for (const char* const wrong :
       {"advise mlp --for throughput --quality study/quality-mlp",
        "advise mlp --for time-to-quality --batch 64", "advise mlp --for time-to-quality --at-most 5ms",
        "advise braggnn --for time-to-quality --quality study/quality-mlp"})
    EXPECT_EQ(run_program(folder / "", wrong).code, 2) << wrong;
}

}  // namespace
}  // namespace superstep
