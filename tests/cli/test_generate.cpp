// superstep generate and superstep baseline.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "superstep/file/hdf5/hdf5.h"
#include "tests/cli/program.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

void expect_refused(const ScratchFolder& folder, const std::string& arguments, int code,
                    std::initializer_list<std::string> parts) {
  const Outcome outcome = run_program(folder / "", arguments);
  EXPECT_EQ(outcome.code, code) << arguments;
  for (const std::string& part : parts) expect_says(outcome.errors, part);
}

// What is renamed to the name of a pipe or a device takes its place: /dev/null would be a file for everybody.
TEST(Generate, PutsNoFileInThePlaceOfAPipe) {
  const ScratchFolder folder;
  const std::pair<const char*, const char*> written[] = {
      {"braggnn", "a.h5"}, {"uno", "uno.h5"}, {"resnet50", "a.npz"},   {"image-autoencoder", "a.idx"},
      {"schnet", "a.xyz"}, {"deepmd", "d"},   {"cifar10-cnn", "a.bin"}};
  for (const auto& [workload, name] : written) {
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    expect_refused(folder, std::string("generate ") + workload + " --samples 4 --out " + name, 1,
                   {name, "is a device or a pipe"});
    EXPECT_TRUE(std::filesystem::is_fifo(folder / name)) << name;
  }
  EXPECT_EQ(run_program(folder / "", "onnx export mlp --out /dev/null").code, 0);  // can be written in place
}

TEST(Generate, WritesTheFileAndSaysTheRate) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(
      folder / "",
      "generate braggnn --samples 500 --out peaks.h5 --seed 7 --set margin=1 --set offset=2 --json out.json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  expect_says(outcome.output, "samples/s");
  EXPECT_EQ(data::Hdf5File(folder / "peaks.h5").info("patch").shape, (Shape{500, 13, 13}));
  const auto json = nlohmann::json::parse(content_of(folder / "out.json"));
  EXPECT_EQ(json["schema"], "superstep-result/1");
  EXPECT_EQ(json["command"], "generate");
  EXPECT_EQ(json["workload"]["name"], "braggnn");
  EXPECT_EQ(json["config"]["options"]["margin"], "1");
  EXPECT_EQ(json["config"]["seed"], 7);
  EXPECT_EQ(json["metrics"]["throughput"]["how"], "measured");
  EXPECT_GT(json["metrics"]["throughput"]["value"], 0);
  EXPECT_TRUE(json["environment"].contains("host"));
}

TEST(Generate, WritesFolders) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(
      folder / "", "generate deepmd --samples 3 --out alloy --set metal=NiCu --set cells=1 --set cutoff=1");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  expect_says(outcome.output, "alloy: 3 samples");
  EXPECT_TRUE(std::filesystem::exists(folder / "alloy" / "type_map.raw"));
}

TEST(Generate, QuietSaysNothing) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "generate braggnn --samples 10 --out peaks.h5 --quiet");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output + outcome.errors, "");
}

TEST(Generate, TeachesWhatThereIs) {
  const ScratchFolder folder;
  expect_says(run_program(folder / "", "generate").output, "braggnn");
  expect_says(run_program(folder / "", "generate braggnn --options").output, "point_spread");
  expect_says(run_program(folder / "", "generate --help").output, "--samples 77267 --out peaks.h5");
  expect_says(run_program(folder / "", "baseline").output, "braggnn");
  expect_says(run_program(folder / "", "baseline braggnn --options").output, "axis-aligned");
}

TEST(Generate, WrongCallsSayWhatToDo) {
  const ScratchFolder folder;
  expect_refused(folder, "generate bragnn --samples 1 --out a.h5", 2, {"bragnn", "did you mean 'braggnn'"});
  expect_refused(folder, "generate braggnn --out a.h5", 2, {"--samples N"});
  expect_refused(folder, "generate braggnn --samples 5", 2, {"--out FILE"});
  expect_refused(folder, "generate braggnn --samples 5 --out a.h5 --set patch=11", 2, {"patch", "no option"});
  expect_refused(folder, "generate braggnn --samples 5 --out a.h5 --set patch_size=12", 2, {"12 px", "odd"});
  expect_refused(folder, "generate braggnn --samples five --out a.h5", 2, {"--samples"});
  expect_refused(folder, "generate braggnn --samples 5 --out none/a.h5", 1,
                 {"none/a.h5", "there is no folder", "make the folder"});
  EXPECT_EQ(folder.file_count(), 0);
}

TEST(Generate, CtrlCLeavesNoFile) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "generate braggnn --samples 100000000 --out peaks.h5", "timeout -s INT 0.5");
  expect_says(outcome.errors, "stopped");
  EXPECT_EQ(folder.file_count(), 0);
}

// The limit on the size of files stands in for a full disk.
TEST(Generate, AFullDiskIsAnError) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "generate braggnn --samples 20000 --out peaks.h5", "ulimit -f 1000;");
  EXPECT_EQ(outcome.code, 1);
  expect_says(outcome.errors, "peaks.h5");
  expect_says(outcome.errors, "File too large");
  EXPECT_EQ(folder.file_count(), 0);
}

TEST(Baseline, FitsAndReports) {
  const ScratchFolder folder;
  run_program(folder / "", "generate braggnn --samples 200 --out peaks.h5");
  const Outcome outcome = run_program(
      folder / "", "baseline braggnn --input peaks.h5 --output fits.h5 --picture fits.html --json out.json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  expect_says(outcome.output, "rotated");
  const auto json = nlohmann::json::parse(content_of(folder / "out.json"));
  EXPECT_LT(json["metrics"]["error_px_mean"]["value"], 0.04);
  EXPECT_EQ(json["metrics"]["error_px_mean"]["unit"], "px");
  EXPECT_EQ(data::Hdf5File(folder / "fits.h5").info("ploc").shape, (Shape{200, 2}));
  expect_says(content_of(folder / "fits.html"), "<svg");
}

TEST(Baseline, BadInputIsAClearError) {
  const ScratchFolder folder;
  expect_refused(folder, "baseline braggnn", 2, {"--input FILE"});
  expect_refused(folder, "baseline braggnn --input none.h5", 1, {"none.h5", "no such file"});
  expect_refused(folder, "baseline bragnn --input none.h5", 2, {"'braggnn'"});
  std::ofstream(folder / "text.h5") << "not data";
  expect_refused(folder, "baseline braggnn --input text.h5", 1,
                 {"text.h5", "this is a text, not a file of arrays or samples"});
  run_program(folder / "", "generate braggnn --samples 200 --out peaks.h5");
  std::filesystem::resize_file(folder / "peaks.h5", 50000);
  expect_refused(folder, "baseline braggnn --input peaks.h5", 1, {"peaks.h5", "cut short"});
}

// A network's answers, refined, beside retrievals that begin from nothing and from them.
TEST(Baseline, BeginsCrystalsWithANetworksAnswers) {
  const ScratchFolder folder;
  const auto run = [&](const std::string& call) {
    Outcome outcome = run_program(folder / "", call);
    EXPECT_EQ(outcome.code, 0) << call << outcome.errors;
    return outcome.output;
  };
  run("generate autophasenn --samples 2 --set size=16 --set diameter=0.4..0.75 --out crystals.h5");
  const std::string model = "infer autophasenn --weights run --input crystals.h5 ";
  run("train autophasenn --data crystals.h5 --set size=16 --set width=2 --epochs 2 --batch 1 --out run");
  run(model + "--output found.h5");
  const std::string refined = run(model + "--refine 20 --output refined.h5");
  for (const char* words : {"refined / the model", "diffraction_l1", "refine_time"})
    expect_says(refined, words);
  EXPECT_EQ(data::Hdf5File(folder / "refined.h5").info("amp").shape, (Shape{2, 1, 8, 8, 8}));
  const std::string beside =
      run("baseline autophasenn --input crystals.h5 --set starts=2 --set iterations=60 "
          "--set start=found.h5,refined.h5 --picture page.html");
  for (const char* words : {"HIO and ER from refined", "the best of all", "time to equal found"})
    expect_says(beside, words);
  expect_says(content_of(folder / "page.html"), "class=\"moving\"");

  expect_refused(folder, "infer mlp --samples 8 --refine 5", 2, {"--refine", "needs labels"});
  expect_refused(folder, model + "--refine 0", 2, {"--refine"});
  expect_refused(folder, "baseline autophasenn --input crystals.h5 --set start=none.h5", 1,
                 {"start: none.h5", "no such file"});
  std::filesystem::resize_file(folder / "refined.h5", 9000);
  expect_refused(folder, "baseline autophasenn --input crystals.h5 --set start=refined.h5", 1,
                 {"refined.h5"});
}

// The same of a scan: answers to every point, stitched, and the passes that begin with them.
TEST(Baseline, BeginsAScanWithANetworksAnswers) {
  const ScratchFolder folder;
  const auto run = [&](const std::string& call) {
    Outcome outcome = run_program(folder / "", call);
    EXPECT_EQ(outcome.code, 0) << call << outcome.errors;
    return outcome.output;
  };
  run("generate ptychonn-64 --samples 49 --set window=32 --set rows=7 --set columns=7 --set photons=1e6 "
      "--out scan.h5");
  run("train ptychonn-64 --data scan.h5 --set window=32 --epochs 1 --batch 16 --out run");
  run("infer ptychonn-64 --weights run --input scan.h5 --output found.h5");
  const std::string beside =
      run("baseline ptychonn-64 --input scan.h5 --set passes=4 --set start=found.h5 "
          "--output object.h5 --picture page.html --json out.json");
  for (const char* words : {"the network's, stitched", "from nothing", "resolution (nm)"})
    expect_says(beside, words);
  const auto json = nlohmann::json::parse(content_of(folder / "out.json"));
  EXPECT_GT(json["metrics"]["network_resolution"]["value"], 0);
  EXPECT_EQ(json["metrics"]["resolution"]["unit"], "nm");
  const data::Hdf5File object(folder / "object.h5");
  EXPECT_EQ(object.info("stitched_phase").shape, object.info("object_phase").shape);
  expect_says(content_of(folder / "page.html"), "From a network&#39;s answers");

  run("generate ptychonn-64 --samples 98 --set window=32 --set rows=7 --set columns=7 --out two.h5");
  expect_refused(folder, "baseline ptychonn-64 --input two.h5 --set start=found.h5", 1,
                 {"found.h5", "98 patterns of 32 x 32"});
}

}  // namespace
}  // namespace superstep
