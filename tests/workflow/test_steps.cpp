// Steps that were done are not done again; a folder holds one study.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/workflow/steps.h"
#include "superstep/workflow/workflow.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::workflow {
namespace {

const std::vector<OptionSpec> specs{{"side", "64", ""}, {"seed", "1", ""}};

class WorkflowSteps : public ::testing::Test {
 protected:
  void SetUp() override { set_quiet(true); }
  void TearDown() override { set_quiet(false); }

  // How often each step was done, by a call of two steps.
  void call(const std::vector<std::string>& assignments = {}, bool fail = false) {
    Steps steps(folder_ / "study", "some", Options(specs, assignments), 2);
    steps.step("first", {folder_ / "study/a"}, [&] {
      ++first_;
      write_file_atomically(folder_ / "study/a", "a");
    });
    steps.step("second", {}, [&] {
      ++second_;
      if (fail) throw Error(ErrorCode::interrupted, "stopped");
    });
  }

  const ScratchFolder folder_;
  int first_ = 0, second_ = 0;
};

TEST_F(WorkflowSteps, AreDoneOnceAndAgainOnlyWhereTheirFilesAreGone) {
  expect_error(ErrorCode::interrupted, {}, [&] { call({}, true); });
  EXPECT_EQ(first_, 1);
  EXPECT_EQ(second_, 1);
  call();
  EXPECT_EQ(first_, 1);
  EXPECT_EQ(second_, 2);
  call();
  EXPECT_EQ(second_, 2);
  std::filesystem::remove(folder_ / "study/a");
  call();
  EXPECT_EQ(first_, 2);
  EXPECT_EQ(second_, 2);
}

TEST_F(WorkflowSteps, AreOfOneStudy) {
  call({"side=32"});
  expect_error(ErrorCode::invalid_argument, {"study", "was begun with side=32, not 64", "--out"},
               [&] { call(); });
  call({"side=32"});
  std::filesystem::create_directories(folder_ / "full");
  write_file_atomically(folder_ / "full/letter.txt", "dear");
  expect_error(ErrorCode::invalid_argument, {"full", "holds something else"},
               [&] { Steps(folder_ / "full", "some", Options(specs, {}), 1); });
  expect_error(ErrorCode::invalid_argument, {"holds the workflow 'some'"}, [&] {
    const std::vector<std::string> same{"side=32"};
    Steps(folder_ / "study", "other", Options(specs, same), 1);
  });
}

TEST_F(WorkflowSteps, RefuseADamagedState) {
  call();
  for (const char* text : {"{", "[]", "{\"workflow\": 3}", "{\"workflow\": \"some\", \"options\": 1}"}) {
    std::ofstream(folder_ / "study/workflow.json") << text;
    expect_error(ErrorCode::bad_file, {"workflow.json", "is no workflow's state"}, [&] { call(); });
  }
}

TEST(Workflows, AreFoundByName) {
  EXPECT_EQ(find_workflow("conductivity").name, "conductivity");
  expect_error(ErrorCode::invalid_argument, {"conductivty", "did you mean 'conductivity'?"},
               [] { find_workflow("conductivty"); });
}

}  // namespace
}  // namespace superstep::workflow
