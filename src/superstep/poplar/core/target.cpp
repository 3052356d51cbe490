#include <poplar/Target.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/models.h"
#include "superstep/poplar/core/types.h"

namespace poplar {

namespace {

std::pair<double, double> limits_of(const Type& type) {
  const superstep::ElementType machine = core::machine_type(type);
  if (machine == superstep::ElementType::f16) return {-65504.0, 65504.0};  // (2 - 2^-10) x 2^15
  return superstep::dispatch(machine, []<class T>() -> std::pair<double, double> {
    if constexpr (std::is_arithmetic_v<T>)
      return {static_cast<double>(std::numeric_limits<T>::lowest()),
              static_cast<double>(std::numeric_limits<T>::max())};
    else
      return {0, 0};
  });
}

// What makes one target another.
auto facts_of(const core::TargetData& data) {
  const core::bsp::Device& device = data.device;
  return std::tie(data.type, data.arch, device.ipus, device.tiles_per_ipu, device.bytes_per_tile,
                  device.workers, device.clock_hz);
}

}  // namespace

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
  return data_ && other.data_ && facts_of(*data_) == facts_of(*other.data_);
}
bool Target::isBefore(const Target& other) const {
  if (!data_ || !other.data_) return !data_ && other.data_;
  return facts_of(*data_) < facts_of(*other.data_);
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
std::size_t Target::getTypeSize(const Type& type) const { return size_in_bytes(core::machine_type(type)); }
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
std::size_t Target::getAtomicStoreGranularity() const { return 4; }  // bytes: the smallest store of a tile
unsigned Target::getTilesPerSharedExchangeBus() const { return 2; }
unsigned Target::getFp16ConvUnitInputLoadElemsPerCycle() const { return getDataPathWidth() / 16; }
unsigned Target::getFp32ConvUnitInputLoadElemsPerCycle() const { return getDataPathWidth() / 32; }
unsigned Target::getConvUnitMaxPipelineDepth(const Type&) const { return data().device.unit_pipeline_depth; }
unsigned Target::getMinIPUSyncDelay() const {
  return static_cast<unsigned>(core::bsp::sync_cycles(data().device, 1));
}
unsigned Target::getMaxIPUSyncDelay() const { return getMinIPUSyncDelay(); }
std::vector<unsigned> Target::getMemoryElementOffsets() const {
  const core::bsp::Device& device = data().device;
  std::vector<unsigned> offsets;
  if (data().type == TargetType::CPU) return {0};
  for (std::uint64_t at = 0; at < device.bytes_per_tile; at += device.memory_element_bytes)
    offsets.push_back(static_cast<unsigned>(at));
  return offsets;
}
unsigned Target::getInterleavedMemoryElementIndex() const {
  return static_cast<unsigned>(data().device.interleaved_start / data().device.memory_element_bytes);
}
std::vector<GlobalExchangeConstraint> Target::getGlobalExchangeConstraints() const {
  std::vector<GlobalExchangeConstraint> constraints;
  const core::bsp::Device& device = data().device;
  const double bits = 8 * device.link_bytes_per_second * device.links_in_rung;
  for (unsigned a = 0; a < device.ipus; ++a)
    for (unsigned b = 0; b < device.ipus; ++b)
      if (a != b) constraints.emplace_back(bits, std::vector<GlobalExchangeFlow>{{a, b}});
  return constraints;
}
double Target::getTypeLimitsMaxAs(const Type& type) const { return limits_of(type).second; }
double Target::getTypeLimitsLowestAs(const Type& type) const { return limits_of(type).first; }

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
