#include "superstep/machine/rates/facts.h"

#include <algorithm>

namespace superstep::machine {
namespace {

// The first that is known.
double first_of(std::initializer_list<double> values) {
  for (const double value : values)
    if (value > 0) return value;
  return 0;
}

// Matrix units multiply this much faster than the vector units beside them at least (chosen: a pair of halves
// in a register is twice).
constexpr double matrix_gain = 3;

double of(const Machine& machine, std::string_view name) {
  for (const Constant& constant : machine.constants())
    if (constant.name == name) return constant.value;
  return 0;
}

}  // namespace

double MachineFacts::peak(std::string_view type) const {
  const double half = first_of({peak_f16, peak_bf16, peak_tf32, peak_f32});
  if (type == "fp32" || type == "f32") return first_of({peak_f32, peak_tf32, half});
  if (type == "tf32") return first_of({peak_tf32, peak_f32, half});
  if (type == "bf16") return first_of({peak_bf16, half});
  // Whoever says 8 bits of a machine without them computes in 16.
  if (type == "fp8" || type == "bfp8") return first_of({peak_fp8, peak_bf16, half});
  if (type == "int8") return first_of({peak_i8, half});
  return half;
}

std::string MachineFacts::vendor() const { return name.substr(0, name.find(' ')); }

std::string MachineFacts::generation() const {
  const bool has_matrix_units = std::max(peak_f16, peak_bf16) > matrix_gain * peak_f32 && peak_f32 > 0;
  const char* narrowest = peak_fp8 > 0                                          ? "fp8"
                          : peak_tf32 > 0                                       ? "tf32"
                          : has_matrix_units || (peak_f32 == 0 && peak_f16 > 0) ? "f16"
                                                                                : "f32";
  return vendor() + " " + narrowest;
}

void complete(MachineFacts& facts) {
  constexpr double core_flops = 32;  // two units of eight f32, a multiply and an add each
  if (facts.style == "processor" && facts.peak_f32 == 0)
    facts.peak_f32 = core_flops * facts.processors * facts.clock;
}

double bytes_of_type(std::string_view type) {
  if (type == "fp32" || type == "tf32" || type == "f32") return 4;
  return type == "fp8" || type == "bfp8" || type == "int8" ? 1 : 2;
}

MachineFacts facts_of(const Machine& machine) {
  const Style style = machine.style();
  MachineFacts facts{.id = machine.id(), .name = machine.name(), .style = name_of(style)};
  if (machine.processor()) facts.style = "processor";  // such a file has its constants under another style
  facts.processors = of(machine, "processors");
  facts.clock = of(machine, "clock");
  facts.peak_f32 = of(machine, "peak_f32");
  facts.peak_tf32 = of(machine, "peak_tf32");
  facts.peak_bf16 = facts.peak_f16 = of(machine, "peak_f16");
  facts.peak_fp8 = of(machine, "peak_fp8");
  facts.peak_i8 = of(machine, "peak_i8");
  facts.memory = of(machine, "memory");
  facts.memory_rate = of(machine, "memory_rate");
  facts.cache = of(machine, "cache");
  facts.link_rate = of(machine, "link_rate");
  facts.units_joined = of(machine, "group_units");
  return facts;
}

}  // namespace superstep::machine
