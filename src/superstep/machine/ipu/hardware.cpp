#include "superstep/machine/ipu/hardware.h"

#include <fmt/format.h>

namespace superstep::machine::ipu {

double Hardware::peak_macs(ElementType element, ElementType partials) const {
  if (element != ElementType::f16) return mac_f32;
  return partials == ElementType::f16 ? mac_f16 : mac_f16_f32;
}

std::int64_t Hardware::conv_units(ElementType element, ElementType partials) const {
  if (element != ElementType::f16) return conv_units_f32;
  return partials == ElementType::f16 ? conv_units_f16 : conv_units_f16_f32;
}

std::int64_t Hardware::vector_width(ElementType element) const {
  return size_in_bytes(element) <= 2 ? vector_f16 : vector_f32;
}

Hardware hardware_of(const Machine& machine) {
  if (machine.style() != Style::bulk_synchronous)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is of style {}, not bulk-synchronous", name_of(machine.style())), machine.id());
  const auto whole = [&](const char* name) { return static_cast<std::int64_t>(machine.value(name)); };
  Hardware h;
  h.tiles = whole("tiles");
  h.workers = whole("workers");
  h.clock = machine.value("clock");
  h.tile_bytes = whole("tile_memory");
  h.interleaved_start = whole("interleaved_start");
  h.memory_element = whole("memory_element");
  h.exchange_rate = whole("exchange_rate");
  h.load_rate = whole("load_rate");
  h.memcpy_rate = whole("memcpy_rate");
  h.coefficient_load_rate = whole("coefficient_load_rate");
  h.conv_units_f16 = whole("conv_units_f16");
  h.conv_units_f16_f32 = whole("conv_units_f16_f32");
  h.conv_units_f32 = whole("conv_units_f32");
  h.vector_f32 = whole("vector_f32");
  h.vector_f16 = whole("vector_f16");
  h.mac_f16 = machine.value("mac_f16");
  h.mac_f16_f32 = machine.value("mac_f16_f32");
  h.mac_f32 = machine.value("mac_f32");
  h.memory_proportion = machine.value("memory_proportion");
  h.sync_cycles = machine.value("sync_cycles");
  h.exchange_setup = machine.value("exchange_setup");
  h.exchange_share = machine.value("exchange_share");
  h.program_cycles = machine.value("program_cycles");
  h.rearrange_base = machine.value("rearrange_base");
  h.rearrange_rate = machine.value("rearrange_rate");
  h.step_cycles = machine.value("step_cycles");
  h.product_bytes = machine.value("product_bytes");
  for (const std::int64_t positive : {h.tiles, h.workers, h.tile_bytes, h.exchange_rate, h.memcpy_rate,
                                      h.coefficient_load_rate, h.conv_units_f16, h.conv_units_f16_f32,
                                      h.conv_units_f32, h.vector_f32, h.vector_f16})
    if (positive < 1)
      throw Error(ErrorCode::bad_file, "a count or rate of the machine is below one", machine.file());
  return h;
}

}  // namespace superstep::machine::ipu
