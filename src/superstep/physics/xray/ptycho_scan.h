// Scan paths of a ptychography experiment, on the grid of object pixels.
#pragma once

#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

// The first pixel (row, column) of a window in the object.
struct Position {
  int y = 0, x = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

// The windows of a scan and the extents of an object that holds them all, with a margin.
struct ScanPath {
  std::vector<Position> positions;
  int height = 0, width = 0;
};

// Where the stage goes. `step` and `jitter` in pixels; jitter is the standard deviation of the placement
// error, cut at three pixels. Positions are rounded to whole pixels after the jitter: the stage's true
// position is then known exactly, as the positions refined by an experiment's own software are.
struct ScanGrid {
  int window = 64;
  double step = 3, jitter = 0.3;
};

// Line after line, `rows` x `columns` points.
ScanPath raster_scan(RandomStream& random, const ScanGrid& grid, int rows, int columns);

// A Fermat spiral, r = c sqrt(k) at multiples of the golden angle, with c = step / sqrt(pi) so that every
// point has the area step^2 to itself (X. Huang et al., Optics Express 22, 12634, 2014).
ScanPath spiral_scan(RandomStream& random, const ScanGrid& grid, int points);

}  // namespace superstep::data
