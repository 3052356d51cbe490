// Answers that are to be written do not wait for the timing of calls.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "superstep/file/npy.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/timing.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

using FileClock = std::filesystem::file_time_type::clock;

// How long before the end of the call its answers were there, in seconds.
double answers_ahead(const InferSettings& settings) {
  infer(settings);
  const auto end = FileClock::now();
  return std::chrono::duration<double>(end - std::filesystem::last_write_time(settings.output)).count();
}

// A call of it takes milliseconds, so that the timing's limit is its time and not its number of calls.
InferSettings calls_of_milliseconds(const std::filesystem::path& output) {
  return {.workload = "braggnn", .output = output, .batch = 512, .samples = 512};
}

TEST(Infer, WritesItsAnswersBeforeItTimesCalls) {
  const ScratchFolder folder;
  const std::filesystem::path output = folder / "answers.npy";
  EXPECT_GE(answers_ahead(calls_of_milliseconds(output)), 0.9 * brief_timing.seconds);
  EXPECT_EQ(data::read_npy(output).shape(), (Shape{512, 2}));
}

}  // namespace
}  // namespace superstep::run
