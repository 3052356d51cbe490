// Limits on threads and memory: the work goes on with what there is, or ends with an error of ours.
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

// Stacks of a gibibyte in an address space of four: two or three threads, wherever the test runs.
const std::string few_threads = "prlimit --stack=1073741824 --as=4294967296";

class Limits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("prlimit --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no prlimit";
  }
  Outcome run(const std::string& arguments, const std::string& before = "") {
    return run_program(folder_ / "", arguments, before);
  }
  ScratchFolder folder_;
};

TEST_F(Limits, WorkGoesOnWithFewerThreads) {
  const std::string call = "generate braggnn --samples 300 --threads 16 --out ";
  ASSERT_EQ(run(call + "all.h5").code, 0);
  const Outcome outcome = run(call + "few.h5", few_threads);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "of 16 threads could be started")) << outcome.errors;
  EXPECT_EQ(content_of(folder_ / "few.h5"), content_of(folder_ / "all.h5"));
  EXPECT_EQ(run("infer mlp --samples 64 --batch 64 --threads 16", few_threads).code, 0);
}

TEST_F(Limits, WithoutAThreadThatIsNeededAnErrorSaysSo) {
  const Outcome outcome = run("train mlp --samples 600 --steps 2 --batch 64 --threads 16", few_threads);
  EXPECT_TRUE(outcome.code == 0 || contains(outcome.errors, "starts no further thread")) << outcome.errors;
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << outcome.code;
}

// OpenMP, in XGBoost, ends the program for a thread that it cannot have.
TEST_F(Limits, LibrariesAreAskedForTheThreadsThereAre) {
  ASSERT_EQ(run("generate yieldgnn --samples 200 --out yields.h5").code, 0);
  const Outcome outcome = run("baseline yieldgnn --input yields.h5 --threads 16", few_threads);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_FALSE(contains(outcome.errors, "libgomp")) << outcome.errors;
}

// A BLAS that starts threads when it is loaded hung here for ever.
TEST_F(Limits, LittleMemoryIsAnErrorOrEnough) {
  for (const char* limit : {"100000000", "200000000", "400000000"}) {
    const std::string before = std::string("timeout -s KILL 60 prlimit --as=") + limit;
    for (const char* call : {"list", "infer mlp --samples 64 --batch 64 --threads 4"}) {
      const Outcome outcome = run(call, before);
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << limit << " " << call << " " << outcome.code;
      EXPECT_FALSE(contains(outcome.errors, "internal error")) << outcome.errors;
    }
  }
}

TEST_F(Limits, PeaksAreThoseOfTheProcessorsThereAre) {
  const std::string call = "bench mlp --mode infer --batch 1 --seconds 0.01 --threads ";
  const Outcome outcome = run(call + "500 --no-record");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_FALSE(contains(outcome.errors, "measured now on 500 threads")) << outcome.errors;
}

}  // namespace
}  // namespace superstep
