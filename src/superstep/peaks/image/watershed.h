// Overlapping spots of one connected component parted at the valleys between their maxima.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/peaks/image/level.h"
#include "superstep/peaks/image/runs.h"

namespace superstep::peaks {

// When two maxima are two spots: the highest way between them (the saddle) lies below the lower maximum by
// `valley` of its height above the background, and by three times what counting photons moves their
// difference by, sqrt(maximum + saddle); noise of the background counts where it is more.
struct Parting {
  double valley = 0.1;
  Level level;

  bool parts(double lower_maximum, double saddle) const;
};

// Memory to work in, kept from frame to frame.
class Watershed {
 public:
  // Parts the components of a frame that label_runs() has labelled into regions: runs are cut where the
  // region changes, and labels count regions, in the order of the components; `component` says of which one a
  // region is. Flooding from the highest pixel down; of equal ones the first in scan order is first. A pixel
  // goes to the region of its highest neighbor.
  int part(Runs& runs, int components, const Parting& parting, std::vector<std::int32_t>& component);

 private:
  struct Pixel {
    std::int32_t place = 0;  // in the component's box
    float value = 0;
    std::int32_t basin = -1;
  };
  struct Ranked {
    float value = 0;
    std::int32_t pixel = 0;
  };
  struct Basin {
    float maximum = 0;
    std::int32_t root = 0;  // the basin that it was joined to
  };

  void take(const Runs& runs, std::span<const std::size_t> own);
  void flood(const Parting& parting);
  void flood_pixel(std::int32_t now, const Parting& parting);
  std::int32_t find(std::int32_t basin);
  void meet(std::int32_t a, std::int32_t b, float saddle, const Parting& parting);
  int number_basins(int first);

  // The component's box and a pixel around it, `stride_` places a row: the pixels' numbers in pixels_, -1 for
  // none. Between components all are -1.
  std::vector<std::int32_t> place_;
  std::int32_t stride_ = 0;
  std::vector<Pixel> pixels_;
  std::vector<Ranked> order_;
  std::vector<Basin> basins_;
  std::vector<std::int32_t> number_;  // of a basin, as a region
};

}  // namespace superstep::peaks
