#include <poplar/Target.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/models.h"
#include "superstep/poplar/core/types.h"

namespace poplar {

std::string toString(TargetType type) {
  switch (type) {
    case TargetType::IPU: return "IPU";
    case TargetType::IPU_MODEL: return "IPU_MODEL";
    case TargetType::CPU: return "CPU";
  }
  return "?";
}

Target::Target() = default;
Target::~Target() = default;
Target::Target(const Target&) = default;
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(const Target&) = default;
Target& Target::operator=(Target&&) noexcept = default;
Target::Target(std::shared_ptr<const core::TargetData> data) : data_(std::move(data)) {}

const core::TargetData& Target::data() const {
  if (!data_) throw poplar_error("a target without a machine: take Device::getTarget()");
  return *data_;
}

bool Target::equals(const Target& other) const {
  if (data_ == other.data_) return true;
  if (!data_ || !other.data_) return false;
  const core::bsp::Device &a = data_->device, &b = other.data_->device;
  return data_->type == other.data_->type && data_->arch == other.data_->arch && a.ipus == b.ipus &&
         a.tiles_per_ipu == b.tiles_per_ipu && a.bytes_per_tile == b.bytes_per_tile &&
         a.workers == b.workers && a.clock_hz == b.clock_hz;
}

TargetType Target::getTargetType() const { return data().type; }
std::string Target::getTargetArchString() const { return data().arch; }
unsigned Target::getNumIPUs() const { return data().device.ipus; }
unsigned Target::getTilesPerIPU() const { return data().device.tiles_per_ipu; }
unsigned Target::getNumTiles() const { return data().device.num_tiles(); }
unsigned Target::getNumWorkerContexts() const { return data().device.workers; }
unsigned Target::getBytesPerTile() const {
  return static_cast<unsigned>(std::min<std::uint64_t>(data().device.bytes_per_tile, UINT_MAX));
}
unsigned Target::getExchangeBytesPerCycle() const { return data().device.exchange_bytes_per_cycle; }
unsigned Target::getMemcpyBytesPerCycle() const { return data().device.memcpy_bytes_per_cycle; }
double Target::getTileClockFrequency() const { return data().device.clock_hz; }
unsigned Target::getDataPathWidth() const { return 8 * data().device.data_path_bytes; }
unsigned Target::getVectorWidth(const Type& type) const {
  return data().device.vector_width(core::machine_type(type));
}
unsigned Target::getTypeSize(const Type& type) const {
  return static_cast<unsigned>(size_in_bytes(core::machine_type(type)));
}
unsigned Target::getWeightsPerConvUnit(bool float_activations) const {
  return float_activations ? data().device.float_weights_per_unit : data().device.half_weights_per_unit;
}
unsigned Target::getConvUnitCoeffLoadBytesPerCycle() const {
  return data().device.coefficient_load_bytes_per_cycle;
}
unsigned Target::getFp16InFp16OutConvUnitsPerTile() const { return data().device.half_in_half_out_units; }
unsigned Target::getFp16InFp32OutConvUnitsPerTile() const { return data().device.half_in_float_out_units; }
unsigned Target::getFp32InFp32OutConvUnitsPerTile() const { return data().device.float_in_float_out_units; }
unsigned Target::getRptCountMax() const { return data().device.repeat_count_max; }
unsigned Target::getNumStrideBits() const { return 10; }  // of the instructions that load with a stride
unsigned Target::getAtomicStoreGranularity() const { return 4; }  // bytes: the smallest store of a tile
unsigned Target::getTilesPerSharedExchangeBus() const { return 2; }
bool Target::supportsExchangeBusSharing() const { return data().type != TargetType::CPU; }

Target Target::createVirtualTarget(unsigned ipus, unsigned tiles_per_ipu) const {
  core::TargetData changed = data();
  changed.device.ipus = ipus;
  changed.device.tiles_per_ipu = tiles_per_ipu;
  return core::checked_target(std::move(changed));
}

Target Target::createCPUTarget(bool, unsigned ipus) { return core::cpu_target(ipus); }

Target Target::createIPUTarget(unsigned ipus, StringRef system, const OptionFlags&) {
  return core::checked_target(core::chip(system, ipus, TargetType::IPU));
}
Target Target::createIPUTarget(unsigned ipus, unsigned tiles_per_ipu, StringRef system, const OptionFlags&) {
  core::TargetData data = core::chip(system, ipus, TargetType::IPU);
  data.device.tiles_per_ipu = tiles_per_ipu;
  return core::checked_target(std::move(data));
}

}  // namespace poplar
