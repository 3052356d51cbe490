// Compiling for a device that is not there: what its vendor's compiler says a program takes. Nothing runs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "superstep/graph/graph.h"
#include "superstep/target/pjrt/client/client.h"

namespace superstep::target::pjrt {

// A device that a plug-in compiles for without one.
struct AbsentDevice {
  std::string_view name;  // "tpu-v5e"
  std::string_view kind;  // of its plug-in: "tpu"
  // As the plug-in knows it: the name of a topology, or, of a GPU, of one of the descriptions of machines
  // that XLA's library holds.
  std::string_view known_as;
  double memory_bytes = 0;  // of one chip
};
std::span<const AbsentDevice> absent_devices();
const AbsentDevice& find_absent_device(
    std::string_view name);  // throws Error (invalid_argument), nearest name

struct AheadReport {
  MemoryNeed memory;
  double compile_seconds = 0;
  std::optional<double>
      cycles;  // the compiler's estimate, summed over its kernels; those in loops count once
  int kernels = 0;
};

// Of a graph that has been through program_passes(). Throws Error: not_found (no plug-in: what to install),
// unsupported, or the compiler's own words; out_of_memory where it finds that the program does not fit.
AheadReport compile_ahead(const AbsentDevice& device, const graph::Graph& graph);

}  // namespace superstep::target::pjrt
