// What every call of the program pays before its work begins.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

// With this variable the loader lists what it would load, and runs nothing.
TEST(Start, LoadsNothingThatFewCommandsNeed) {
  const ScratchFolder folder;
  const std::string loaded = run_program(folder / "", "", "env LD_TRACE_LOADED_OBJECTS=1").output;
  ASSERT_TRUE(contains(loaded, "libc.so")) << loaded;
  for (const char* name : {"libhdf5", "libcurl", "libxgboost", "libmpi", "libzmq", "librdkafka", "libhwy"})
    EXPECT_FALSE(contains(loaded, name)) << loaded;
}

// Each costs every call some hundred microseconds. What few commands need is in a wing (cli/wing.h), opened
// late (base/system/late_library.h) or linked statically.
TEST(Start, LoadsAtMostTwentyFiveLibraries) {
  const ScratchFolder folder;
  const std::string loaded = run_program(folder / "", "", "env LD_TRACE_LOADED_OBJECTS=1").output;
  EXPECT_LE(std::ranges::count(loaded, '>'), 25) << loaded;  // "libc.so.6 => /lib/..."
}

}  // namespace
}  // namespace superstep
