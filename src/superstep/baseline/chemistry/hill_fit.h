// Hill curves fitted to measured dose responses, as screening studies are evaluated.
#pragma once

#include <span>

#include "superstep/physics/chemistry/dose_response.h"

namespace superstep::baseline {

// The curve nearest to the points in the least-squares sense: slope between 0.1 and 10, log10 EC50 within
// four decades of the doses, Einf between 0 and 1. Needs at least four points of one length; throws Error
// (invalid_argument) on fewer, (diverged) when the fit fails.
data::HillCurve fit_hill(std::span<const double> log10_concentrations, std::span<const double> viabilities);

}  // namespace superstep::baseline
