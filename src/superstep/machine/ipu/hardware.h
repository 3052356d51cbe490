// The numbers of a bulk-synchronous machine as the planners take them: whole numbers where the hardware has
// whole numbers, and the few fitted constants beside them.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"
#include "superstep/machine/machine.h"

namespace superstep::machine::ipu {

// The defaults are those of a GC200 (machines/gc200.toml has the sources).
struct Hardware {
  std::int64_t tiles = 1472, workers = 6;
  double clock = 1.325e9;  // Hz
  std::int64_t tile_bytes = 638976, interleaved_start = 212992, memory_element = 16384;
  std::int64_t exchange_rate = 4, load_rate = 16, memcpy_rate = 8, coefficient_load_rate = 8;  // B/cycle
  std::int64_t conv_units_f16 = 16, conv_units_f16_f32 = 8, conv_units_f32 = 8;
  std::int64_t vector_f32 = 2, vector_f16 = 4;
  double mac_f16 = 64, mac_f16_f32 = 32, mac_f32 = 16;  // a tile and cycle
  double memory_proportion = 0.6;

  // Fitted (docs/machines.md): cycles, a share of the exchange rate, cycles a byte. 587 is where the vendor's
  // regression of rearranging copies begins (PopLibs, MIT licence).
  double sync_cycles = 100, exchange_setup = 100, exchange_share = 0.8, program_cycles = 500;
  double rearrange_base = 587, rearrange_rate = 1.5, step_cycles = 300;
  double product_bytes = 2000;  // of a tile

  double peak_macs(ElementType element, ElementType partials) const;  // a tile and cycle
  std::int64_t conv_units(ElementType element, ElementType partials) const;
  std::int64_t vector_width(ElementType element) const;
};

// Throws Error (invalid_argument) when the machine's style is not bulk-synchronous.
Hardware hardware_of(const Machine& machine);

inline std::int64_t bytes_of(ElementType element) {
  return static_cast<std::int64_t>(size_in_bytes(element));
}

}  // namespace superstep::machine::ipu
