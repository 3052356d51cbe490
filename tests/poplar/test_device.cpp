// Targets, models and devices.
#include <cstdlib>
#include <poplar/DeviceManager.hpp>

#include "tests/poplar/machine.h"

using namespace poplar;

TEST(PoplarDevice, ModelsHaveTheNumbersOfTheirChips) {
  const Target old = IPUModel("ipu1").createDevice().getTarget(),
               later = IPUModel().createDevice().getTarget();
  EXPECT_EQ(old.getTilesPerIPU(), 1216u);
  EXPECT_EQ(old.getBytesPerTile(), 256u * 1024);
  EXPECT_EQ(old.getTargetArchString(), "ipu1");
  EXPECT_EQ(later.getTilesPerIPU(), 1472u);
  EXPECT_EQ(later.getBytesPerTile(), 624u * 1024);
  EXPECT_EQ(later.getTargetType(), TargetType::IPU_MODEL);
  EXPECT_EQ(later.getNumWorkerContexts(), 6u);
  EXPECT_EQ(later.getExchangeBytesPerCycle(), 4u);
  EXPECT_EQ(later.getDataPathWidth(), 64u);
  EXPECT_EQ(old.getFp32InFp32OutConvUnitsPerTile(), 4u);
  EXPECT_EQ(later.getFp32InFp32OutConvUnitsPerTile(), 16u);
  EXPECT_EQ(Target::createIPUTarget(1, "ipu2").getFp32InFp32OutConvUnitsPerTile(), 16u);
  EXPECT_EQ(later.getVectorWidth(FLOAT), 2u);
  EXPECT_EQ(later.getVectorWidth(HALF), 4u);
  EXPECT_EQ(later.getTypeSize(HALF), 2u);
  EXPECT_EQ(later.getTypeSize(UNSIGNED_LONGLONG), 8u);
}

TEST(PoplarDevice, ModelsCanBeChanged) {
  IPUModel model;
  model.numIPUs = 4;
  model.tilesPerIPU = 16;
  model.memoryBytesPerTile = 1000;
  model.tileClockFrequency = 1e6;
  const Target target = model.createDevice().getTarget();
  EXPECT_EQ(target.getNumTiles(), 64u);
  EXPECT_EQ(target.getBytesPerTile(), 1000u);
  EXPECT_EQ(target.getTileClockFrequency(), 1e6);
  EXPECT_TRUE(target != IPUModel().createDevice().getTarget());
  EXPECT_TRUE(target == model.createDevice().getTarget());
}

TEST(PoplarDevice, TargetsAreKeysOfMaps) {
  std::map<Target, int> known{
      {Target(), 0}, {small_device(4).getTarget(), 1}, {small_device(8).getTarget(), 2}};
  EXPECT_EQ(known.size(), 3u);
  EXPECT_EQ(known.at(Target()), 0);
  EXPECT_EQ(known.at(small_device(4).getTarget()), 1);
  EXPECT_EQ(known.at(small_device(8).getTarget()), 2);
  EXPECT_FALSE(Target() < Target());
}

TEST(PoplarDevice, MachinesThatCannotBeAreRefused) {
  expect_throw<invalid_machine_model>([] { IPUModel("ipu9"); }, "ipu9");
  IPUModel model;
  model.numIPUs = 3;
  expect_throw<invalid_machine_model>([&] { model.createDevice(); }, "3 chips");
  model.numIPUs = 1;
  model.tilesPerIPU = 0;
  expect_throw<invalid_machine_model>([&] { model.createDevice(); }, "tiles_per_ipu");
  expect_throw<poplar_error>([] { Device().getTarget(); }, "not there");
}

TEST(PoplarDevice, DevicesOfTypeIpuAreModels) {
  unsetenv("SUPERSTEP_POPLAR_DEVICES");
  DeviceManager manager = DeviceManager::createDeviceManager();
  EXPECT_EQ(manager.getDevices(TargetType::IPU, 3).size(), 0u);
  const auto devices = manager.getDevices(TargetType::IPU, 4);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices[0].attach());
  EXPECT_TRUE(devices[0].isAttached());
  devices[0].detach();
  EXPECT_FALSE(devices[0].isAttached());
  EXPECT_EQ(devices[0].getTarget().getNumTiles(), 4u * 1472);
  EXPECT_TRUE(devices[0].supportsRemoteBuffers());
  EXPECT_EQ(manager.getDevice(devices[0].getId()).getTarget().getNumIPUs(), 4u);
  EXPECT_EQ(manager.getDevices(TargetType::CPU, 1).at(0).getTarget().getNumTiles(), 1u);
}

TEST(PoplarDevice, TheEnvironmentChoosesTheChip) {
  DeviceManager manager;
  setenv("SUPERSTEP_POPLAR_DEVICES", "gc2", 1);
  EXPECT_EQ(manager.getDevices(TargetType::IPU, 1).at(0).getTarget().getTilesPerIPU(), 1216u);
  setenv("SUPERSTEP_POPLAR_DEVICES", "none", 1);
  EXPECT_TRUE(manager.getDevices(TargetType::IPU, 1).empty());
  EXPECT_EQ(manager.getNumDevices(), 0u);
  setenv("SUPERSTEP_POPLAR_DEVICES", "gc3", 1);
  expect_throw<invalid_option>([&] { manager.getNumDevices(); }, "gc3");
  unsetenv("SUPERSTEP_POPLAR_DEVICES");
}

TEST(PoplarDevice, TheHostIsATargetWithoutLimits) {
  const Device device = Device::createCPUDevice();
  EXPECT_EQ(device.getTarget().getTargetType(), TargetType::CPU);
  EXPECT_EQ(device.getTarget().getNumWorkerContexts(), 1u);
  Graph graph(device.getTarget());
  Tensor t = graph.addVariable(FLOAT, {1000000}, VariableMappingMethod::LINEAR, "t");
  Engine engine(graph, program::Copy(t.reverse(0), t));
  engine.load(device);
  EXPECT_NO_THROW(engine.run());
}

TEST(PoplarDevice, VirtualDevicesHaveFewerTiles) {
  Device device = IPUModel().createDevice();
  EXPECT_EQ(device.createVirtualDevice(16).getTarget().getNumTiles(), 16u);
  EXPECT_EQ(device.getTarget().createVirtualTarget(2, 8).getNumTiles(), 16u);
  EXPECT_EQ(Target::createIPUTarget(2, "ipu2").getNumIPUs(), 2u);
  EXPECT_EQ(Target::createIPUTarget(1, 12, "ipu1").getNumTiles(), 12u);
}

TEST(PoplarDevice, TypesHaveNames) {
  EXPECT_EQ(UNSIGNED_LONGLONG.toString(), "unsigned long long");
  EXPECT_EQ(HALF.toString(), "half");
}
