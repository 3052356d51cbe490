// A device as a machine file: what is measured there is what predictions read.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/lab/machine/device_machine.h"
#include "superstep/machine/machine.h"
#include "tests/contains.h"
#include "tests/pjrt/plugins.h"

namespace superstep {
namespace {

TEST(DeviceMachine, IsAMachineFileThatIsRead) {
  NEEDS_CPU_PLUGIN();
  // Sizes of an instant: the numbers mean little, the file must be whole.
  const lab::HostMachine measured = lab::measure_device(
      {.id = "box", .target = "pjrt-cpu", .longest_product = 1e-9, .stream_bytes = std::size_t{1} << 20});
  const std::string text = lab::to_toml(measured);
  const machine::Machine read = machine::parse_machine(text, "box.toml");
  EXPECT_EQ(read.id(), "box");
  for (const char* name : {"peak_f32", "peak_f16", "memory", "memory_rate", "launch_overhead", "host_rate",
                           "host_latency", "link_rate", "matrix_half_flops"}) {
    EXPECT_GT(read.value(name), 0) << name;
    EXPECT_LE(read.constant(name).low, read.value(name)) << name;
    EXPECT_GE(read.constant(name).high, read.value(name)) << name;
  }
  EXPECT_TRUE(contains(text, "PJRT ")) << "the plug-in that it was measured through";
  EXPECT_TRUE(contains(text, "product_f32_64"));
  EXPECT_TRUE(contains(text, "product_bf16_64"));
  // What is computed once, before the first call, would take no time at any size.
  EXPECT_FALSE(contains(text, "product_f32_128"));
  // Links and clock were not measured, and the file says so.
  for (const char* name : {"clock", "link_rate"})
    EXPECT_GE(read.constant(name).high, 5 * read.value(name)) << name;
}

}  // namespace
}  // namespace superstep
