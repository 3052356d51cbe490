#include "superstep/machine/ipu/superstep_cost.h"

#include <cmath>

namespace superstep::machine::ipu {

// The vendor's planner counts in sixteenths of a cycle (PopLibs).
std::int64_t exchange_cycles(double bytes, std::int64_t rate) {
  return bytes <= 0 ? 0 : static_cast<std::int64_t>(std::ceil(16.0 * bytes / static_cast<double>(16 * rate)));
}

Cycles exchange_phase(const Hardware& hardware, double bytes) {
  if (bytes <= 0) return {};
  const double moved = static_cast<double>(exchange_cycles(bytes, hardware.exchange_rate));
  return {.exchange = hardware.exchange_setup + moved / hardware.exchange_share,
          .sync = hardware.sync_cycles};
}

Cycles superstep_cycles(const Hardware& hardware, double compute, double bytes) {
  Cycles cycles = exchange_phase(hardware, bytes);
  cycles.compute = compute;
  if (bytes <= 0) cycles.sync = hardware.sync_cycles;
  return cycles;
}

// Cycles a byte of a rearranging copy whose atoms are two, four and eight bytes: the vendor's regression
// (PopLibs, sdk-release-2.0, MIT licence). Their ratios are kept, their size is the fitted constant
// (docs/machines.md).
constexpr double rate_of_2 = 5.148, rate_of_4 = 3.125, rate_of_8 = 0.44;

Cycles rearrange_cycles(const Hardware& hardware, double bytes, std::int64_t atom) {
  if (bytes <= 0) return {};
  const double ratio = atom <= 2 ? 1.0 : atom <= 4 ? rate_of_4 / rate_of_2 : rate_of_8 / rate_of_2;
  return {.sync = hardware.sync_cycles,
          .rearrange = hardware.rearrange_base + ratio * hardware.rearrange_rate * bytes};
}

Cycles program_cycles(const Hardware& hardware) { return {.control = hardware.program_cycles}; }

}  // namespace superstep::machine::ipu
