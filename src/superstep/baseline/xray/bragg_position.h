// Where a Bragg peak is in a patch of detector counts: the conventional methods that BraggNN replaces.
//
// A patch is square and row-major. Positions are in px, (0, 0) is the centre of the first pixel.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::baseline {

struct PeakPosition {
  double column = 0, row = 0;
};

// The pixel with the most counts; the first in scan order where there are several.
PeakPosition brightest_pixel(std::span<const float> patch, int size);

// The centre of mass of the counts above the background, which is taken to be the value that 20 % of the
// pixels are below (the 25th smallest of 121); pixels below it weigh nothing.
PeakPosition centroid(std::span<const float> patch, int size);

// A pseudo-Voigt peak on a flat background (physics/xray/bragg_model.h has the formula).
struct PeakFit {
  PeakPosition position;
  double amplitude = 0, sigma1 = 0, sigma2 = 0, angle = 0, eta = 0, background = 0;
  bool converged = true;  // otherwise `position` is the centroid
  int iterations = 0;
};

// Least squares by Levenberg and Marquardt (Ceres, automatic derivatives) with weights 1 / max(1, count),
// begun at the brightest pixel with widths of 1.3 px and eta = 1/2. Axes along columns and rows have 7
// parameters, rotated axes have 8.
PeakFit fit_axis_aligned(std::span<const float> patch, int size);
PeakFit fit_rotated(std::span<const float> patch, int size);

enum class BraggMethod { rotated, axis_aligned, centroid, brightest };
std::span<const std::string> bragg_method_names();  // in that order
// The method by name; brightest pixel and centroid set nothing but the position.
PeakFit locate(BraggMethod method, std::span<const float> patch, int size);

}  // namespace superstep::baseline
