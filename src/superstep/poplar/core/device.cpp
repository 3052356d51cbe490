#include <cstdlib>
#include <iostream>
#include <mutex>
#include <poplar/Device.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/models.h"

namespace poplar {
namespace {

const core::DeviceData& existing(const std::shared_ptr<core::DeviceData>& data) {
  if (!data)
    throw poplar_error("a device that is not there: take IPUModel::createDevice or a DeviceManager's");
  return *data;
}

Device make_device(unsigned id, Target target) {
  return Device(std::make_shared<core::DeviceData>(core::DeviceData{id, std::move(target), false}));
}

}  // namespace

Device::Device() = default;
Device::~Device() = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::Device(std::shared_ptr<core::DeviceData> data) : data_(std::move(data)) {}

unsigned Device::getId() const { return existing(data_).id; }
const Target& Device::getTarget() const { return existing(data_).target; }
bool Device::attach() const {
  existing(data_);
  data_->attached = true;
  return true;
}
void Device::detach() const {
  existing(data_);
  data_->attached = false;
}
bool Device::isAttached() const { return existing(data_).attached; }
bool Device::supportsRemoteBuffers() const { return getTarget().getTargetType() == TargetType::IPU; }
Device Device::createVirtualDevice(unsigned tiles_per_ipu) {
  return make_device(getId(), getTarget().createVirtualTarget(getTarget().getNumIPUs(), tiles_per_ipu));
}
Device Device::createSimulatorDevice(const Target&, const OptionFlags&) {
  throw poplar_error("there is no simulator of an IPU's instructions here: take an IPUModel");
}
Device Device::createCPUDevice(unsigned ipus) { return make_device(0, core::cpu_target(ipus)); }

// --- devices of type IPU --------------------------------------------------------------------------------

namespace {

constexpr std::array<unsigned, 7> sizes{1, 2, 4, 8, 16, 32, 64};  // chips that a device may have

// The chip that stands for hardware; empty: there is none.
std::string chip_of_environment() {
  const char* wanted = std::getenv("SUPERSTEP_POPLAR_DEVICES");
  const std::string name = wanted && *wanted ? wanted : "gc200";
  if (name == "none") return {};
  if (name != "gc2" && name != "gc200" && name != "bow")
    throw invalid_option("SUPERSTEP_POPLAR_DEVICES is '" + name + "': take gc2, gc200, bow or none");
  return name;
}

void say_that_a_model_answers(const std::string& chip) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::cerr << "poplar: there is no IPU here: devices are models of the " << chip
              << " (SUPERSTEP_POPLAR_DEVICES=gc2, gc200, bow or none)\n";
  });
}

}  // namespace

std::size_t DeviceManager::getNumDevices() const { return chip_of_environment().empty() ? 0 : sizes.size(); }

Device DeviceManager::getDevice(unsigned id, const OptionFlags&) const {
  const std::string chip = chip_of_environment();
  if (chip.empty() || id >= sizes.size()) throw poplar_error("there is no device " + std::to_string(id));
  say_that_a_model_answers(chip);
  return make_device(id, core::checked_target(core::chip(chip, sizes[id], TargetType::IPU)));
}

std::vector<Device> DeviceManager::getDevices(const OptionFlags& options) const {
  std::vector<Device> devices;
  for (unsigned id = 0; id < getNumDevices(); ++id) devices.push_back(getDevice(id, options));
  return devices;
}

std::vector<Device> DeviceManager::getDevices(TargetType type, unsigned ipus,
                                              const OptionFlags& options) const {
  std::vector<Device> devices;
  if (type == TargetType::CPU) devices.push_back(Device::createCPUDevice(ipus));
  if (type == TargetType::IPU_MODEL) {
    IPUModel model;
    model.numIPUs = ipus;
    devices.push_back(model.createDevice());
  }
  if (type != TargetType::IPU) return devices;
  for (unsigned id = 0; id < getNumDevices(); ++id)
    if (sizes[id] == ipus) devices.push_back(getDevice(id, options));
  return devices;
}

// --- models ---------------------------------------------------------------------------------------------

IPUModel::IPUModel(const char* version)
    : IPUVersion(version),
      numIPUs(1),
      tilesPerSuperTile(2),
      instructionBytes(4),
      supportsSuperTileSendReceive(true),
      minIPUSyncDelay(0),
      relativeSyncDelay(RelativeSyncDelayType::AUTO),
      compileIPUCode(false) {
  const core::bsp::Device device = core::chip(version, 1, TargetType::IPU_MODEL).device;
  tilesPerIPU = device.tiles_per_ipu;
  numWorkerContexts = device.workers;
  memoryBytesPerTile = static_cast<unsigned>(device.bytes_per_tile);
  tileClockFrequency = device.clock_hz;
  exchangeBytesPerCycle = device.exchange_bytes_per_cycle;
  memcpyBytesPerCycle = device.memcpy_bytes_per_cycle;
  interleavedMemoryElementIndex =
      static_cast<unsigned>(device.interleaved_start / device.memory_element_bytes);
  globalSyncCycles = static_cast<unsigned>(device.constants.sync_cycles.value);
  dataPathWidth = 8 * device.data_path_bytes;
  fp16ConvUnitMaxPipelineDepth = device.unit_pipeline_depth;
  fp16ConvUnitInputLoadElemsPerCycle = 4;  // a data path of halves
  fp32ConvUnitInputLoadElemsPerCycle = 2;  // a data path of floats
  fp16InFp16OutConvUnitsPerTile = device.half_in_half_out_units;
  fp16InFp32OutConvUnitsPerTile = device.half_in_float_out_units;
  fp32InFp32OutConvUnitsPerTile = device.float_in_float_out_units;
  convUnitCoeffLoadBytesPerCycle = device.coefficient_load_bytes_per_cycle;
}

IPUModel::~IPUModel() = default;

Device IPUModel::createDevice(const OptionFlags&, bool, unsigned id) const {
  core::TargetData data = core::chip(IPUVersion, numIPUs, TargetType::IPU_MODEL);
  core::bsp::Device& device = data.device;
  device.tiles_per_ipu = tilesPerIPU;
  device.workers = numWorkerContexts;
  device.bytes_per_tile = memoryBytesPerTile;
  device.clock_hz = tileClockFrequency;
  device.exchange_bytes_per_cycle = exchangeBytesPerCycle;
  device.memcpy_bytes_per_cycle = memcpyBytesPerCycle;
  device.data_path_bytes = dataPathWidth / 8;
  device.half_in_half_out_units = fp16InFp16OutConvUnitsPerTile;
  device.half_in_float_out_units = fp16InFp32OutConvUnitsPerTile;
  device.float_in_float_out_units = fp32InFp32OutConvUnitsPerTile;
  device.coefficient_load_bytes_per_cycle = convUnitCoeffLoadBytesPerCycle;
  return make_device(id, core::checked_target(std::move(data)));
}

}  // namespace poplar
