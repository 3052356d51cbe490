// superstep peaks as it is called: what is written and said, and what is refused before the work.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/file/npy.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

constexpr const char* small_scan =
    "generate braggnn --set mode=frames --set frame_height=200 --set frame_width=150 --set peaks_per_frame=3 "
    "--set rocking=1 --set threshold=0 --samples 12 --out scan.h5";

void expect_peaks(const ScratchFolder& folder, const std::string& arguments, int code,
                  const std::string& part) {
  const Outcome outcome = run_program(folder / "", "peaks " + arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  EXPECT_TRUE(contains(outcome.output + outcome.errors, part)) << arguments << "\n"
                                                               << outcome.output << outcome.errors;
}

TEST(PeaksCommand, ForOthersNoFileOfItSaysWhereThingsLay) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", small_scan).code, 0);
  const std::string where = (folder / "").string(), scan = (folder / "scan.h5").string();
  for (const char* form : {"json", "h5", "npz"}) {
    const std::string table = std::string("t.") + form;
    expect_peaks(folder, scan + " --method fit --out " + table, 0, "written to");
    EXPECT_TRUE(contains(read_text_file(folder / table), where)) << "it does without --private";
    expect_peaks(folder, scan + " --method fit --private --json r.json --out private-" + table, 0,
                 "written to");
    for (const std::string& file : {"private-" + table, std::string("r.json")}) {
      const std::string text = read_text_file(folder / file);
      EXPECT_EQ(text.find(where), std::string::npos) << file;
      EXPECT_TRUE(contains(text, "scan.h5")) << file;
    }
  }
}

TEST(PeaksCommand, WritesTablesAndAResult) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", small_scan).code, 0);
  expect_peaks(folder, "scan.h5 --method fit --out t.json --json result.json --omega-step 0.25", 0,
               "written to t.json");
  const auto table = parse_json(read_text_file(folder / "t.json"));
  const auto result = parse_json(read_text_file(folder / "result.json"));
  EXPECT_EQ(result["command"], "peaks");
  EXPECT_EQ(result["config"]["method"], "fit");
  EXPECT_EQ(result["config"]["omega"]["step"], 0.25);
  EXPECT_EQ(result["config"]["shape"], (nlohmann::json{12, 200, 150}));
  EXPECT_GT(table["reflections"]["omega"].size(), 15u);
  EXPECT_EQ(table["reflections"]["omega"].size(), table["reflections"]["row"].size());
  const std::string text = read_text_file(folder / "result.json");
  for (const char* metric :
       {"found_share", "false_share", "error_px_mean_isolated", "frame_rate", "locate_rate"})
    EXPECT_TRUE(contains(text, metric)) << metric;
  expect_peaks(folder, "scan.h5 --method centroid --mask mask=scan.h5:frames", 2, "no pixel is left");
  expect_peaks(folder, "'frames=scan.h5:frames' --method centroid --no-merge", 0, "threshold");
  EXPECT_FALSE(contains(run_program(folder / "", "peaks scan.h5 --method centroid").errors, "warning"));
  expect_peaks(folder, "scan.h5 --method centroid --threshold 60000", 0, "nothing is above the threshold");
}

TEST(PeaksCommand, RefusesBeforeTheWork) {
  const ScratchFolder folder;
  data::write_npy(folder / "frames.npy", Tensor(ElementType::u16, {2, 20, 20}));
  const std::string fit = "frames.npy --method fit ";
  expect_peaks(folder, "", 2, "frames is required");
  expect_peaks(folder, "frames.npy", 2, "superstep train braggnn");
  expect_peaks(folder, "frames.npy --run none", 1, "none");
  expect_peaks(folder, fit + "--run none", 2, "is of --method braggnn");
  expect_peaks(folder, fit + "--out table.xls", 2, ".csv");
  expect_peaks(folder, fit + "--out nowhere/table.csv", 1, "there is no folder nowhere");
  expect_peaks(folder, fit + "--out frames.npy", 2, "would be overwritten");
  expect_peaks(folder, fit + "--threshold high", 2, "'high' is no threshold");
  expect_peaks(folder, fit + "--patch 10", 2, "even number");
  expect_peaks(folder, fit + "--part none --valley 0.2", 2, "--part watershed");
  expect_peaks(folder, fit + "--omega-start 3 --out t.csv", 2, "--omega-step");
  expect_peaks(folder, fit + "--omega-step 0 --out t.csv", 2, "no omega");
  expect_peaks(folder, fit + "--omega-step 1", 2, "give --out");
  expect_peaks(folder, fit + "--dark none.h5", 1, "none.h5");
  expect_peaks(folder, "none.h5 --method fit", 1, "none.h5");
  EXPECT_FALSE(std::filesystem::exists(folder / "t.csv"));
}

TEST(PeaksCommand, StoppedItWritesNothing) {
  const ScratchFolder folder;
  // Half of all pixels above the threshold of fits that take minutes.
  std::vector<std::uint16_t> counts(40 * 512 * 512);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = i % 8 < 2 && i / 512 % 8 < 2 ? 500 + i % 7 : 3;
  data::write_npy(folder / "frames.npy", Tensor::from<std::uint16_t>({40, 512, 512}, counts));
  const Outcome outcome = run_program(
      folder / "", "peaks frames.npy --method fit --out table.csv --threads 1", "timeout -s INT 1");
  EXPECT_EQ(outcome.code, 124) << outcome.errors;  // timeout's own word: it had to stop the program
  EXPECT_FALSE(std::filesystem::exists(folder / "table.csv"));
  EXPECT_TRUE(contains(outcome.errors, "no file was written")) << outcome.errors;
}

}  // namespace
}  // namespace superstep
