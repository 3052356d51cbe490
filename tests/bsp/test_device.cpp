// Numbers of the machines that are published, reproduced from the parts.
#include "tests/bsp/support.h"

namespace superstep::bsp {
namespace {

TEST(Device, PublishedPeaksComeOut) {
  EXPECT_NEAR(gc200_device().peak_flops(Type::f16, Type::f16), 249.6e12, 0.06e12);
  EXPECT_NEAR(bow_device().peak_flops(Type::f16, Type::f16), 348.6e12, 0.06e12);
  EXPECT_NEAR(gc2_device().peak_flops(Type::f16, Type::f32), 124.5e12, 0.06e12);
  EXPECT_NEAR(gc2_device().peak_flops(Type::f32, Type::f32), 31.1e12, 0.06e12);
  EXPECT_NEAR(gc200_device().peak_flops(Type::f32, Type::f32), 62.4e12, 0.06e12);
  EXPECT_NEAR(bow_device().memory_bytes_per_second(), 65.4e12, 0.06e12);
  EXPECT_EQ(gc200_device().amp_macs_per_cycle(Type::f16, Type::f32), 32);
  EXPECT_EQ(gc200_device().amp_macs_per_cycle(Type::i8, Type::i32), 0);
  EXPECT_EQ(find_device("ipu-pod64").num_tiles(), 94208u);
  EXPECT_EQ(gc200_device().bytes_per_tile * 1472, 918528u * 1024);
}

TEST(Device, SyncGrowsWithTheChips) {
  const Device device = gc200_device(4);
  const std::uint64_t inside = sync_cycles(device, 1);
  EXPECT_EQ(sync_cycles(device, 2) - inside, 40u);    // ceil(15e-9 x 1.325e9 x 1 x 2)
  EXPECT_EQ(sync_cycles(device, 4) - inside, 80u);    // two hops
  EXPECT_EQ(sync_cycles(device, 64) - inside, 676u);  // 17 hops
}

TEST(Device, LinksShareTheirRate) {
  const Device device = gc200_device(6);
  const double one = 0.85 * 128 * 1073741824.0 / 8;
  const auto seconds = [&](std::vector<ChipFlow> flows) { return link_seconds(device, flows); };
  EXPECT_DOUBLE_EQ(seconds({{0, 1, 1000}}), 1000 / (4 * one));               // within the rung
  EXPECT_DOUBLE_EQ(seconds({{0, 2, 1000}}), 1000 / (2 * one));               // up
  EXPECT_DOUBLE_EQ(seconds({{0, 4, 1000}, {2, 4, 500}}), 1500 / (2 * one));  // the upper step carries both
  EXPECT_DOUBLE_EQ(seconds({{0, 3, 1000}, {1, 3, 500}}), 1500 / (2 * one));  // across first, then up
  EXPECT_DOUBLE_EQ(seconds({{0, 1, 1000}, {1, 0, 1000}}),
                   1000 / (4 * one));  // the ways do not disturb each other
  EXPECT_EQ(seconds({{1, 1, 1000}}), 0);
}

TEST(Device, ConstantsHaveRangesAndSources) {
  for (const OpenConstantInfo& info : open_constants()) {
    const OpenConstant& constant = gc200_device().constants.*info.member;
    EXPECT_LE(constant.low, constant.value) << info.name;
    EXPECT_GE(constant.high, constant.value) << info.name;
    EXPECT_FALSE(info.source.empty());
  }
}

TEST(Device, WrongNumbersAreNamed) {
  Device device = gc200_device();
  device.clock_hz = 0;
  expect_error(ErrorCode::invalid_argument, [&] { Graph graph(device); },
               {"device gc200", "clock_hz must be above 0"});
  device = gc200_device();
  device.tiles_per_ipu = 0;
  expect_error(ErrorCode::invalid_argument, [&] { Graph graph(device); }, {"tiles_per_ipu"});
}

}  // namespace
}  // namespace superstep::bsp
