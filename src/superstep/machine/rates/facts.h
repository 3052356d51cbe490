// What a data sheet says of a machine, and nothing else: peaks by type, memory, links. Laws of few constants
// (law.h) begin with them, so that a machine without a file can be asked about.
#pragma once

#include <string>
#include <string_view>

#include "superstep/machine/machine.h"

namespace superstep::machine {

// SI units; 0: not said.
struct MachineFacts {
  std::string id, name, style;
  double processors = 0, clock = 0;
  double peak_f32 = 0, peak_tf32 = 0, peak_bf16 = 0, peak_f16 = 0, peak_fp8 = 0, peak_i8 = 0;
  double memory = 0, memory_rate = 0, cache = 0;
  double link_rate = 0;  // of all links of a unit, one way
  double units_joined = 0;

  // FLOP/s of a type ("fp32", "tf32", "amp", "int8", ...): that of the nearest wider type where the sheet has
  // none; 0: it has no arithmetic at all.
  double peak(std::string_view type) const;
  std::string vendor() const;      // the first word of the name
  std::string generation() const;  // vendor and the narrowest type of its matrix units: "NVIDIA fp8"
};

// Where a processor's sheet has no peak: two fused multiply-adds of 256 bits a cycle and core.
void complete(MachineFacts& facts);

double bytes_of_type(std::string_view type);

// Of a machine file.
MachineFacts facts_of(const Machine& machine);

}  // namespace superstep::machine
