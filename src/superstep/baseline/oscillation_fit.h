// The frequency of an oscillation that many sensors see, by least squares (workload lstm).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

// Periods in the whole sequence x [steps, sensors], 1 to 5: the sinusoid of free amplitude and phase, with
// the sensors' known delays, that lies nearest by the sum of squares. Of white noise this is the likeliest
// one.
double fit_periods(std::span<const float> x, std::int64_t steps, std::int64_t sensors);

// The same over the first sensor alone, by the highest peak of its discrete Fourier transform: steps of one
// period.
double peak_periods(std::span<const float> x, std::int64_t steps, std::int64_t sensors);

Entry oscillation_baseline();  // "lstm"

}  // namespace superstep::baseline
