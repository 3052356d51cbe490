// The plug-ins that tests use: our own that answers wrongly, and the CPU plug-in, where it was fetched.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "superstep/target/pjrt/plugins.h"

namespace superstep::test {

// Where tools/setup-plugins put what it fetched, and programs compiled quickly; whoever runs the tests may
// say otherwise.
inline bool has_cpu_plugin(const char* folder) {
  setenv("XLA_FLAGS", "--xla_backend_optimization_level=0", 0);
  setenv("SUPERSTEP_PJRT_PLUGINS", folder, 0);
  return target::pjrt::find_plugin(*target::pjrt::find_kind("pjrt-cpu")).has_value();
}

}  // namespace superstep::test

// Skips a test where there is no CPU plug-in.
#define NEEDS_CPU_PLUGIN()                                 \
  if (!superstep::test::has_cpu_plugin(SUPERSTEP_PLUGINS)) \
  GTEST_SKIP() << "there is no PJRT plug-in for this processor: tools/setup-plugins cpu"
