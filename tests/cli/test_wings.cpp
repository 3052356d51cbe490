// Commands that are in programs of their own beside the program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

// The program where no other is beside it.
class Alone : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "bin");
    std::filesystem::copy_file(program_under_test(), folder_ / "bin/superstep");
  }
  Outcome run(const std::string& arguments) {
    return run_program(folder_ / "", "&& ./bin/superstep " + arguments, "true");
  }
  ScratchFolder folder_;
};

TEST_F(Alone, RefusesTheirCommandsAndSaysWhatToBuild) {
  for (const char* call :
       {"serve run", "serve --help", "help serve", "bench serve http://127.0.0.1:1", "design"}) {
    const Outcome outcome = run(call);
    EXPECT_EQ(outcome.code, 1) << call << outcome.errors;
    EXPECT_EQ(outcome.output, "") << call;
    EXPECT_TRUE(contains(outcome.errors, "bin/superstep-")) << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, "make wings")) << outcome.errors;
  }
}

TEST_F(Alone, HasAllOthersAndNamesTheirs) {
  EXPECT_EQ(run("list").code, 0);
  const Outcome help = run("--help"), page = run("man serve"), completion = run("completion bash");
  EXPECT_TRUE(contains(help.output, "serve trained models over HTTP")) << help.output;
  EXPECT_EQ(page.code, 0) << page.errors;
  EXPECT_EQ(completion.code, 0) << completion.errors;
  EXPECT_TRUE(contains(completion.output, "serve")) << completion.output;
}

TEST(Wings, AreExplainedAndCompletedAsEveryCommand) {
  const ScratchFolder folder;
  EXPECT_TRUE(contains(run_program(folder / "", "serve --help").output, "--peer-memory"));
  EXPECT_TRUE(contains(run_program(folder / "", "help md").output, "superstep md"));
  EXPECT_TRUE(contains(run_program(folder / "", "completion bash").output, "--peer-memory"));
  EXPECT_TRUE(contains(run_program(folder / "", "man serve").output, "peer"));
}

TEST(Wings, RefuseAWrongCallAsEveryCommand) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "serve --no-such-option");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.errors, "superstep serve")) << outcome.errors;
}

TEST(Wings, SayThatTheyAreOfAnotherRevision) {
  const ScratchFolder folder;
  const Outcome usual = run_program(folder / "", "design ald --example");
  EXPECT_EQ(usual.errors, "");
  const Outcome old = run_program(
      folder / "",
      "&& SUPERSTEP_STARTED_BY='0.1.0 \"abc\"' " + program_under_test() + "-extra design ald --example",
      "true");
  EXPECT_EQ(old.code, 0) << old.errors;
  EXPECT_TRUE(contains(old.errors, "superstep of 0.1.0 \"abc\"")) << old.errors;
  EXPECT_TRUE(contains(old.errors, "make wings")) << old.errors;
}

TEST(Wings, HaveAllCommandsOfTheProgram) {
  const std::string beside = program_under_test() + "-extra";
  EXPECT_EQ(std::system((beside + " list >/dev/null").c_str()), 0);
}

}  // namespace
}  // namespace superstep
