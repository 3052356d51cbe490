// Segmentation by thresholds in the place of U-Net: lesions in FLAIR volumes, phases in striped micrographs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct PhaseSettings {
  int levels = 5;           // of the wavelets
  double damping = 0.5;     // see destripe.h; 0: stripes are left in
  double smoothing_px = 1;  // against noise, before the threshold
};

// The conducting (darker) phase of a micrograph: destriped, smoothed, divided by Otsu's threshold.
std::vector<std::uint8_t> segment_phases(std::span<const std::uint8_t> micrograph, int width, int height,
                                         const PhaseSettings& settings);

Entry unet_256_thresholds();
Entry unet_64_thresholds();

}  // namespace superstep::baseline
