// Signs of life where there is no terminal.
#include <gtest/gtest.h>

#include <thread>

#include "superstep/base/progress.h"
#include "superstep/base/watch.h"
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

// On a terminal: drawn at the end at least, and the line is closed.
TEST(Bar, IsDrawnWithItsShareAndClosed) {
  set_progress(ProgressMode::bar);
  ::testing::internal::CaptureStderr();
  {
    Progress progress("train", 200, "samples");
    progress.update(50, "loss 1");
    EXPECT_TRUE(progress_line_is_open());
    progress.update(51);  // too soon after the last
    progress.finish("loss 2");
    EXPECT_FALSE(progress_line_is_open());
    progress.finish("loss 3");  // it has ended
  }
  set_progress(ProgressMode::none);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(text, "train [======                  ]  25 %")) << text;
  EXPECT_TRUE(contains(text, "loss 1"));
  EXPECT_TRUE(contains(text, "loss 2"));
  EXPECT_FALSE(contains(text, "loss 3"));
  EXPECT_EQ(count_of(text, "\r"), 2u);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Bar, PhasesLeaveNothingBehind) {
  set_progress(ProgressMode::bar);
  ::testing::internal::CaptureStderr();
  { Progress::phase("compiling").update(0); }
  set_progress(ProgressMode::none);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "shorter than a second";
}

TEST(Listener, IsToldTheLastWord) {
  std::vector<std::pair<double, std::string>> told;
  set_progress_listener([&](const ProgressReport& report) { told.emplace_back(report.done, report.note); });
  {
    Progress progress("train", 10, "samples");
    progress.update(3, "loss 1");
    progress.update(7, "loss 2");  // too soon after the first
    progress.finish();
  }
  set_progress_listener({});
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], (std::pair<double, std::string>(3, "loss 1")));
  EXPECT_EQ(told[1], (std::pair<double, std::string>(7, "loss 2")));
}

}  // namespace
}  // namespace superstep
