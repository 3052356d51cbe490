// Signs of life where there is no terminal.
#include <gtest/gtest.h>

#include <thread>

#include "superstep/base/progress.h"
#include "tests/contains.h"

namespace superstep {
namespace {

class Lines : public ::testing::Test {
 protected:
  Lines() { set_progress(ProgressMode::line); }
  ~Lines() override { set_progress(ProgressMode::none); }
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(Lines, SayHowFarTheWorkIs) {
  Progress progress("braggnn", 3000, "samples", 0);
  progress.update(1260, "loss 0.1");
  const std::string line = progress.line();
  EXPECT_TRUE(contains(line, "braggnn: 42 %, 1,260 of 3,000 samples, ")) << line;
  EXPECT_TRUE(contains(line, "left, loss 0.1")) << line;
  EXPECT_TRUE(contains(Progress::phase("compiling").line(), "compiling: for "));
}

TEST_F(Lines, AreWrittenAtMilestonesAndInNoOtherMode) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("train", 10, "samples");
    progress.update(5);
    progress.milestone("epoch 1 of 2");
    set_progress(ProgressMode::none);
    progress.milestone("epoch 2 of 2");
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(text, "epoch 1 of 2"), 1u) << text;
  EXPECT_EQ(count_of(text, "epoch 2 of 2"), 0u) << text;
}

// The thread that writes them outlives this test, as it does every program; it writes in mode `line` alone.
TEST_F(Lines, AreWrittenByThemselvesWhileSomethingTakesLong) {
  ::testing::internal::CaptureStderr();
  start_progress_lines("superstep test", std::chrono::milliseconds(80));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  {
    const Progress outer("outer", 10, "steps"), inner = Progress::phase("compiling");
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
  set_progress(ProgressMode::none);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_GE(count_of(text, "superstep test: at work for "), 1u) << text;
  EXPECT_GE(count_of(text, "compiling: for "), 1u) << text;
  EXPECT_EQ(count_of(text, "outer:"), 0u) << "the innermost is told: " << text;
}

}  // namespace
}  // namespace superstep
