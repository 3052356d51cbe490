// Kernel density estimate of electron spectra: the histogram smoothed with the best Gaussian.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct Smoothing {
  double angle_sigma = 0, energy_sigma = 0;  // rows, bins
};

// Density estimated from a histogram [angle, energy] of `electrons a density` 5: smoothed, divided by 5. The
// angle is periodic.
std::vector<float> smooth_histogram(std::span<const std::uint8_t> counts, const Smoothing& smoothing);

// The smoothing with the smallest mean squared error over the pairs, by search on a grid of sigmas.
Smoothing tune_smoothing(std::span<const std::uint8_t> counts, std::span<const float> densities,
                         ThreadPool& pool);

// Mean distance, in bins, between the energies of highest density of two images [angle, energy], over the
// rows in which the first has a highest one; nothing where it has none in any (a shot without electrons of a
// pulse).
std::optional<double> peak_energy_error(std::span<const float> truth, std::span<const float> found);

Entry cookiebox_smoother();

}  // namespace superstep::baseline
