// superstep design: studies in folders, problems and trials of users, and what is said when they are wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/system/folder_lock.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

nlohmann::json json_in(const std::filesystem::path& path) { return nlohmann::json::parse(content_of(path)); }

TEST(Design, MeetsThePublishedCaseAndDrawsItsCurves) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "design ald --out study --json r.json --threads 2");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  for (const char* word :
       {": met", "floor: Latin hypercube", "ceiling: direct optimization", "written: study"})
    EXPECT_TRUE(contains(outcome.output, word));
  for (const char* name :
       {"study/design.html", "study/state.json", "study/trials.csv", "study/iteration-1.png"})
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  const nlohmann::json result = json_in(folder / "r.json");
  EXPECT_EQ(result["command"], "design");
  EXPECT_EQ(result["studies"][0]["iterations"].back()["measured_inside"], true);
}

// A signal comes once an iteration is kept, however long that takes. TERM: a shell's jobs do not hear INT.
constexpr const char* stop_when_kept =
    "sh -c '\"$@\" & while kill -0 $! && ! test -s long/state.json; do sleep 0.02; done 2>/dev/null; "
    "kill $!; wait $!' sh";

TEST(Design, GoesOnWhereItWasStopped) {
  const ScratchFolder folder;
  // A third of the noise: fifty points are never all measured inside, and no iteration is the last.
  const std::string example = run_program(folder / "", "design ald --example").output;
  nlohmann::json problem = nlohmann::json::parse(example);
  problem["tolerance"] = 0.001;
  write_file_atomically(folder / "mine.json", problem.dump());
  const std::string call = "design ald --problem mine.json --quiet ";
  ASSERT_EQ(run_program(folder / "", call + "--iterations 3 --out whole").code, 0);
  ASSERT_EQ(run_program(folder / "", call + "--iterations 1 --out parts --threads 3").code, 0);
  ASSERT_EQ(run_program(folder / "", call + "--iterations 3 --out parts --threads 1").code, 0);
  EXPECT_EQ(json_in(folder / "parts/state.json"), json_in(folder / "whole/state.json"));
  const Outcome stopped = run_program(folder / "", call + "--iterations 500 --out long", stop_when_kept);
  EXPECT_TRUE(contains(stopped.errors, "the same command goes on"));
  const nlohmann::json before = json_in(folder / "long/state.json");
  EXPECT_GE(before["trials"].size(), 20U);
  const auto made = before["iterations"].size();
  const Outcome more = run_program(
      folder / "", "design ald --problem mine.json --out long --iterations " + std::to_string(made + 1));
  EXPECT_EQ(more.code, 0) << more.errors;
  EXPECT_TRUE(contains(more.output, "going on after " + std::to_string(made) + " iteration"));
  nlohmann::json after = json_in(folder / "long/state.json")["iterations"];
  after.erase(after.size() - 1);
  EXPECT_EQ(after, before["iterations"]);
  const Outcome other = run_program(folder / "", call + "--seed 2 --out whole");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.errors, "another seed"));
  const FolderLock lock(folder / "long");
  const Outcome second = run_program(folder / "", call + "--iterations 500 --out long");
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(contains(second.errors, "is being written to by process"));
}

TEST(Design, RepeatsWithOtherSeeds) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "design ald --seeds 3 --out all");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "of 3 seeds"));
  EXPECT_TRUE(std::filesystem::exists(folder / "all/seed-3/design.html"));
}

TEST(Design, ProposesTheNextTrialsOfAReactorOfOnesOwn) {
  const ScratchFolder folder;
  write_file_atomically(folder / "etch.json", std::string_view(R"({"name": "etching",
    "unknowns": {"power": [10, 90], "flow": [1, 5]}, "target": {"curve": [3, 4, 4.5]}, "batch": 3})"));
  write_file_atomically(folder / "t.csv",
                        std::string_view("power,flow,a,b,c\n20,1.5,.6,1.13,2.85\n30,4.5,2.7,2.94,3.49\n"
                                         "80,2,3.2,5.23,5.69\n70,4,5.6,6.47,5.32\n40,2.5,2,2.92,4.02\n"));
  const Outcome outcome =
      run_program(folder / "", "design ald --problem etch.json --trials t.csv --out next --json r.json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "where the target is expected"));
  EXPECT_TRUE(
      contains(content_of(folder / "next/next.csv"), "role,flow,power,curve_1,curve_2,curve_3\ntarget,"));
  EXPECT_EQ(json_in(folder / "r.json")["learning"].size(), 3U);
}

TEST(Design, SaysWhatIsWrongAndWhere) {
  const ScratchFolder folder;
  write_file_atomically(folder / "p.json",
                        std::string_view(R"({"unknowns": {"purge_a": [0.1, 0.2]}, "proces": 3})"));
  const Outcome member = run_program(folder / "", "design ald --problem p.json");
  EXPECT_EQ(member.code, 1);
  EXPECT_TRUE(contains(member.errors, "p.json: 'proces' is no member"));
  EXPECT_TRUE(contains(member.errors, "did you mean 'process'?"));
  EXPECT_EQ(run_program(folder / "", "design ald --problem none.json").code, 1);
  EXPECT_EQ(run_program(folder / "", "design cvd").code, 2);
  EXPECT_EQ(run_program(folder / "", "design ald --seeds 0").code, 2);
  EXPECT_EQ(run_program(folder / "", "design ald --case anl --problem p.json").code, 2);
}

}  // namespace
}  // namespace superstep
