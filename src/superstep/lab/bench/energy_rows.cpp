#include "superstep/lab/bench/energy_rows.h"

namespace superstep::lab {
namespace {

constexpr double region = 10;  // s; a shorter one says little

}  // namespace

void add_energy(record::Result& result, const std::function<void()>& call, double samples, EnergyMeter meter,
                Clock& clock) {
  if (!meter.available()) {
    result.config["energy"] = "absent: " + meter.reason();
    return;
  }
  const EnergyReport report = measure_energy(call, meter, region, clock);
  result.config["energy"] = meter.source();
  result.add("energy", report.joules, "J");
  result.add("energy_per_sample", report.joules / (static_cast<double>(report.calls) * samples), "J");
  result.add("power_mean", report.joules / report.seconds, "W");
  result.add("power_max", report.power_max, "W");
}

}  // namespace superstep::lab
