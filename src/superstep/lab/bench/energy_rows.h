// Energy as metrics of a result: "energy" and "energy_per_sample" in J, "power_mean" and "power_max" in W.
#pragma once

#include <functional>

#include "superstep/lab/measure/energy.h"
#include "superstep/record/result.h"

namespace superstep::lab {

// Calls for ten seconds and reads the host's counters; `samples` are those of a call. Where there are no
// counters config["energy"] says why, and no metric is added.
void add_energy(record::Result& result, const std::function<void()>& call, double samples,
                EnergyMeter meter = EnergyMeter(), Clock& clock = steady_clock());

}  // namespace superstep::lab
