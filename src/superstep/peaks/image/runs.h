// Pixels above a threshold as runs along rows, and the connected components that they form.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/peaks/image/correction.h"

namespace superstep::peaks {

// Neighboring pixels of a row: columns [begin, end).
struct PixelRun {
  std::int32_t row = 0, begin = 0, end = 0;
  std::int32_t label = -1;  // of the component or region that they belong to; -1: of none
  std::uint32_t first = 0;  // where their values are in Runs::values

  std::int32_t size() const { return end - begin; }
};

struct Runs {
  std::vector<PixelRun> runs;  // by rows, then columns
  std::vector<float> values;   // corrected, of all pixels in the order of the runs

  void clear() {
    runs.clear();
    values.clear();
  }
};

// The pixels whose corrected value is above the threshold, into `found`. Pixels without data are not. Throws
// Error (invalid_argument) where it is more than a quarter of the frame: then the threshold is in the
// background.
void find_runs(const Frame& frame, double threshold, Runs& found);

// Labels runs by components, 8 neighbors: 0, 1, 2, ... in the order in which a scan by rows meets them.
// Returns how many there are.
int label_runs(std::vector<PixelRun>& runs);

// The label of a pixel; -1: no run holds it.
int label_at(const std::vector<PixelRun>& runs, std::int32_t row, std::int32_t column);

}  // namespace superstep::peaks
