// What every call of the program pays before its work begins.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace superstep
