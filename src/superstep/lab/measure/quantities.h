// Measurements as quantities of a result.
#pragma once

#include <string>

#include "superstep/lab/measure/protocol.h"
#include "superstep/record/result.h"

namespace superstep::lab {

// The time of a call, with every sample. Named `name`, in s.
record::Quantity time_quantity(std::string name, const Measurement& measurement);
// `amount` over the time of a call: a rate, with its samples where they are not to be had from another
// quantity of the result.
enum class KeepSamples { yes, no };
record::Quantity rate_quantity(std::string name, double amount, std::string unit,
                               const Measurement& measurement, KeepSamples keep = KeepSamples::no);

}  // namespace superstep::lab
