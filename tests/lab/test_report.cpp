// A report of a run of every workload: its metric, the verdict, and pictures of its own field.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "superstep/base/file.h"
#include "superstep/lab/report/report.h"
#include "superstep/run/train/train.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/workload.h"
#include "tests/browser.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::temp_directory_path() / fmt::format("superstep-report-{}-{}", ::getpid(), name)) {
    fs::create_directories(path_);
    setenv("SUPERSTEP_HOME", (path_ / "home").c_str(), 1);
  }
  ~Folder() {
    unsetenv("SUPERSTEP_HOME");
    fs::remove_all(path_);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Two steps of a small form of the workload.
struct Tiny {
  const char* workload;
  std::int64_t samples;
  std::vector<std::string> options;
  std::vector<const char*> parts;  // of its page: words of its own field
};

const std::vector<Tiny>& tiny_runs() {
  static const std::vector<Tiny> runs{
      {"braggnn", 60, {}, {"pseudo-Voigt fit", "The network&#39;s worst", "magnified", "fit, 8 parameters"}},
      {"ptychonn-64", 320, {"window=32"}, {"worst: sample", "phase, rad", "difference of amplitude"}},
      {"ptychonn-128", 320, {"window=32"}, {"worst: sample", "phase, rad", "difference of phase"}},
      {"cookienetae", 20, {"width=4"}, {"electrons / 5", "worst: sample", "true density"}},
      {"pca-compress-128",
       60,
       {"side=32", "components=8"},
       {"out of its code", "log10(1 + counts)", "worst: sample"}},
      {"sobel-800", 20, {"side=64"}, {"magnitude", "Gx less the exact one", "worst: sample"}},
      {"image-autoencoder", 40, {"width=2"}, {"out of its code", "PSNR, dB", "worst: sample"}},
      {"autophasenn",
       20,
       {"size=32", "width=2"},
       {"worst: sample", "true phase, plane", "predicted modulus", "pattern of the predicted crystal"}},
      {"conductivity",
       40,
       {"side=32", "width=2"},
       {"Ratio over the area of the insulator", "current density", "worst: sample", "bound of isotropic"}},
      {"uno", 120, {"width=16"}, {"Area under the dose response curve", "The worst"}},
      {"polymer-gcn",
       400,
       {"width=16"},
       {"Glass transition temperature", "The worst", "What atoms add", "class=\"molecule\""}},
      {"polymer-mpnn", 400, {"width=16"}, {"Glass transition temperature", "class=\"molecule\""}},
      {"gin",
       400,
       {"width=8"},
       {"Actives found", "said in the mean", "What atoms add", "class=\"molecule\""}},
      {"yieldgnn", 200, {"width=8"}, {"Yield", "What components do", "What atoms add", "class=\"molecule\""}},
      {"schnet",
       60,
       {"width=8", "blocks=1", "most=5"},
       {"Energy a molecule", "Error by size", "class=\"cluster\"", "those of the network in green"}},
      {"deepmd",
       40,
       {"embedding=4,8", "axis=4", "fitting=8,8"},
       {"Energy an atom", "Force component", "Errors by frame", "those of the model in green"}},
      {"unet-64",
       60,
       {"size=32", "width=4", "levels=2"},
       {"green: found", "worst: sample", "Dice of the slices"}},
      {"unet-256", 60, {"size=32", "width=4", "levels=2"}, {"green: found", "worst: sample"}},
      {"cifar10-cnn", 60, {}, {"class=\"confusion\"", "Confused most often", "The worst errors"}},
      {"resnet50", 40, {"size=32", "width=4"}, {"What was taken for what", "The worst errors"}},
      {"efficientnet-b0", 20, {"size=32"}, {"What was taken for what", "The worst errors"}},
      {"efficientnet-b4", 20, {"size=32"}, {"What was taken for what", "The worst errors"}},
      {"mobilenet-v3-small", 20, {"size=32"}, {"What was taken for what", "The worst errors"}},
      {"mobilenet-v3-large", 20, {"size=32"}, {"What was taken for what", "The worst errors"}},
      {"vit-base", 20, {"size=32", "layers=1", "width=48"}, {"What was taken for what", "The worst errors"}},
      {"resnext101",
       20,
       {"size=32", "width=8", "groups=4", "group-width=2"},
       {"What was taken for what", "The worst errors"}},
      {"wallmodel", 40, {}, {"Stress at the wall: predicted against true", "The wall from above"}},
      {"gravity-wave-drag",
       40,
       {"levels=21", "width=16", "layers=1"},
       {"Size of the drag on u", "Share of the drag", "worst: sample", "Drag on v"}},
      {"bert-small", 40, {"layers=1"}, {"Hidden words", "the best answer there is", "▁▁▁▁"}},
      {"distilbert", 40, {"layers=1", "vocabulary=512", "length=32"}, {"Hidden words", "▁▁▁▁"}},
      {"bert-large",
       40,
       {"layers=1", "width=32", "heads=2", "vocabulary=512", "length=64", "sequences=2"},
       {"Hidden words", "▁▁▁▁"}},
      {"bert-base-squad",
       40,
       {"layers=1", "width=32", "heads=2", "vocabulary=512", "length=64"},
       {"Questions", "the model&#39;s answer"}},
      {"gpt2",
       40,
       {"layers=1", "width=32", "heads=2", "length=32", "vocabulary=128"},
       {"What comes next", "▁▁▁▁"}},
      {"llama", 40, {"layers=1", "length=32", "vocabulary=128"}, {"What comes next", "▁▁▁▁"}},
      {"lstm", 40, {}, {"Periods in a window", "sensor 1", "The worst"}},
      {"mlp", 40, {}, {"predicted against true", "The worst"}},
      {"mcmc", 540, {}, {"predicted against true", "The worst"}},
      {"rnn-k1", 64, {}, {"no true values"}},
      {"rnn-k2", 32, {}, {"no true values"}},
      {"rnn-k3", 16, {}, {"no true values"}},
      {"rnn-k4", 32, {}, {"no true values"}}};
  return runs;
}

const Tiny& tiny_run(std::string_view workload) {
  return *std::ranges::find(tiny_runs(), workload,
                            [](const Tiny& tiny) { return std::string_view(tiny.workload); });
}

Report report_of(const Tiny& tiny, const fs::path& folder) {
  run::train({.workload = tiny.workload,
              .model_options = tiny.options,
              .samples = tiny.samples,
              .batch = 4,
              .steps = 2},
             {.out = folder / "run"});
  return make_report({.run = folder / "run", .out = folder / "report", .samples = 50, .serving_calls = 3});
}

// Without the page in the message.
bool has(const std::string& html, const std::string& part) { return html.find(part) != std::string::npos; }

class EveryReport : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryReport, SaysWhatTheModelIsWorthInItsField) {
  const Folder folder(GetParam());
  const Tiny& tiny = tiny_run(GetParam());
  const Report report = report_of(tiny, folder.path());
  const std::string html = read_text_file(report.page);
  for (const char* part : tiny.parts) EXPECT_TRUE(has(html, part)) << part;
  const workload::Workload& workload = workload::find_workload(GetParam());
  EXPECT_EQ(report.quality.has_value(), !workload.metrics.empty());
  if (report.quality) {
    EXPECT_EQ(report.quality->metric, workload.metrics.front().name);
    EXPECT_TRUE(has(html, page::escape(run::verdict(*report.quality))));
    EXPECT_TRUE(contains(report.text, run::verdict(*report.quality)));
    EXPECT_EQ(has(html, "target, at "), report.quality->target.has_value());
    for (const auto& reference : {report.quality->references.floor, report.quality->references.conventional,
                                  report.quality->references.limit}) {
      if (!reference) continue;
      EXPECT_TRUE(has(html, page::escape(reference->method))) << reference->method;
    }
  }
  EXPECT_EQ(html.find("<script"), html.rfind("<script")) << "the page's own alone";
}

INSTANTIATE_TEST_SUITE_P(Workloads, EveryReport, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Tiny& tiny : tiny_runs()) names.emplace_back(tiny.workload);
                           return names;
                         }()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

// A workload that is added has its report tried here.
TEST(Reports, AreTriedForEveryWorkload) {
  for (const workload::Workload& workload : workload::workloads())
    EXPECT_TRUE(std::ranges::any_of(tiny_runs(), [&](const Tiny& tiny) {
      return tiny.workload == workload.name;
    })) << workload.name;
}

TEST(Reports, SayHowTheRunWasMade) {
  const Folder folder("made");
  const Tiny& tiny = tiny_run("mlp");
  report_of(tiny, folder.path());
  const fs::path run = folder.path() / "run";
  write_file_atomically(run / "run.toml", std::string_view("workload = \"mlp\"\ndata = \"/home/me/x.h5\"\n"));
  write_file_atomically(run / "environment.json",
                        std::string_view(R"([{"date": "2026-11-29T18:19:17+00:00"}])"));
  ReportSettings settings{.run = run, .out = folder.path() / "report", .samples = 50, .serving_calls = 3};
  const std::string page = read_text_file(make_report(settings).page);
  for (const char* words : {"optimizer", "learning rate", " steps, ", "2026-11-29T18:19:17", "/home/me/x.h5"})
    EXPECT_TRUE(contains(page, words)) << words;
  settings.for_others = true;
  EXPECT_FALSE(contains(read_text_file(make_report(settings).page), "/home/me"));
}

TEST(Reports, AreReadableInABrowser) {
  if (!test::has_browser()) GTEST_SKIP() << "chromium is not installed";
  for (const char* workload : {"braggnn", "cifar10-cnn", "mlp"}) {
    const Folder folder(std::string("browser-") + workload);
    const std::string html = read_text_file(report_of(tiny_run(workload), folder.path()).page);
    for (const auto& [width, scheme] :
         {std::pair(1800, test::Scheme::light), std::pair(1200, test::Scheme::dark),
          std::pair(400, test::Scheme::dark)}) {
      const nlohmann::json page = test::shown(html, width, scheme);
      test::expect_readable(page, scheme);
      if (!page.is_object() || width != 1800) continue;
      EXPECT_GT(page["right"].get<double>(), 0.6 * width) << "nothing stands in the right half";
    }
  }
}

TEST(Reports, OfARunWhoseDataAreGoneStillSpeakOfTheRest) {
  const Folder folder("gone");
  const Tiny& tiny = tiny_run("uno");
  report_of(tiny, folder.path());
  const fs::path config = folder.path() / "run" / "config.json";
  auto written = nlohmann::json::parse(read_text_file(config));
  bool changed = false;
  for (auto& [key, value] : written.items())
    if (value.is_object() && value.contains("data")) value["data"] = "/no/such/file.h5", changed = true;
  if (written.contains("data")) written["data"] = "/no/such/file.h5", changed = true;
  ASSERT_TRUE(changed);
  write_file_atomically(config, written.dump());
  const Report report = make_report(
      {.run = folder.path() / "run", .out = folder.path() / "report", .samples = 50, .serving_calls = 3});
  EXPECT_FALSE(report.quality);
  EXPECT_TRUE(contains(report.text, "cannot be read"));
  EXPECT_TRUE(contains(read_text_file(report.page), "Serving"));
}

TEST(Chosen, AreTheBestTheUsualAndTheWorst) {
  const double nan = std::nan("");
  const std::vector<double> errors{5, 1, 4, nan, 2, 3, 9};
  std::string text;
  for (const workload::Chosen& chosen : workload::best_median_worst(errors, 2))
    text += fmt::format("{}{} ", chosen.why[0], chosen.at);
  EXPECT_EQ(text, "b1 b4 m5 m2 w6 w3 ");
  for (std::size_t count = 0; count < 12; ++count)
    for (std::size_t each = 0; each < 6; ++each) {
      const std::vector<double> some(count, 1.0);
      std::set<std::size_t> seen;
      for (const workload::Chosen& chosen : workload::best_median_worst(some, each)) {
        EXPECT_LT(chosen.at, count);
        EXPECT_TRUE(seen.insert(chosen.at).second) << "a sample is shown twice";
      }
      EXPECT_EQ(seen.size(), std::min(count, 3 * each));
    }
}

}  // namespace
}  // namespace superstep::lab
