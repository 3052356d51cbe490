#include "superstep/poplar/core/models.h"

#include "superstep/bsp/compile/device.h"
#include "superstep/poplar/core/guard.h"

namespace poplar::core {
namespace {

// Programs plan by it: PopLibs has vertices of 16 units for floats on this generation. As many sums as before
// are done in a cycle (the machine below counts 8 units of twice the speed).
constexpr std::uint32_t second_generation_float_units = 16;

bool is_second_generation(const std::string& version) { return version != "ipu1" && version != "gc2"; }

}  // namespace

Target checked_target(TargetData data) {
  try {
    bsp::check_device(data.device);
  } catch (const superstep::Error& error) {
    throw invalid_machine_model(error.what());
  }
  return Target(std::make_shared<const TargetData>(std::move(data)));
}

TargetData chip(const std::string& version, unsigned ipus, TargetType type) {
  // 21 is the second generation's later instruction set: the same chip here.
  const std::string name = version == "ipu21" ? std::string("ipu2") : version;
  TargetData data;
  try {
    data.device = bsp::find_device(name, 1);
  } catch (const superstep::Error& error) {
    throw invalid_machine_model(error.what());
  }
  data.device.ipus = ipus;
  data.type = type;
  data.arch = is_second_generation(version) ? "ipu2" : "ipu1";
  if (is_second_generation(version)) data.device.float_in_float_out_units = second_generation_float_units;
  return data;
}

Target cpu_target(unsigned ipus) {
  TargetData data;
  data.type = TargetType::CPU;
  data.arch = "cpu";
  bsp::Device& device = data.device;
  device = bsp::gc200_device(1);
  device.name = "cpu";
  device.ipus = ipus;
  device.tiles_per_ipu = 1;
  device.workers = 1;
  device.float_in_float_out_units = second_generation_float_units;
  device.bytes_per_tile = std::uint64_t{1} << 46;  // chosen: more than any host has
  for (const bsp::OpenConstantInfo& info : bsp::open_constants()) device.constants.*info.member = {0, 0, 0};
  return checked_target(std::move(data));
}

}  // namespace poplar::core
