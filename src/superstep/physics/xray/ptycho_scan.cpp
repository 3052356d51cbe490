#include "superstep/physics/xray/ptycho_scan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

constexpr int margin = 3;  // px around the outermost nominal windows: the furthest that jitter goes

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::invalid_argument, what, "scan path");
}

void require_valid(const ScanGrid& grid) {
  require(grid.window >= 1, "the window needs at least one pixel");
  require(grid.step > 0 && grid.jitter >= 0, "the step must be above 0 px and the jitter not below");
}

int jittered(RandomStream& random, double nominal, double jitter) {
  const double offset = std::clamp(jitter * random.normal(), -double{margin}, double{margin});
  return margin + static_cast<int>(std::lround(nominal + offset));
}

}  // namespace

ScanPath raster_scan(RandomStream& random, const ScanGrid& grid, int rows, int columns) {
  require_valid(grid);
  require(rows >= 1 && columns >= 1, "a raster needs at least one row and one column");
  const auto extent = [&](int points) {
    return grid.window + 2 * margin + static_cast<int>(std::ceil(grid.step * (points - 1)));
  };
  ScanPath path{{}, extent(rows), extent(columns)};
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      const int y = jittered(random, row * grid.step, grid.jitter);
      path.positions.push_back({y, jittered(random, column * grid.step, grid.jitter)});
    }
  return path;
}

ScanPath spiral_scan(RandomStream& random, const ScanGrid& grid, int points) {
  require_valid(grid);
  require(points >= 1, "a spiral needs at least one point");
  const double golden_angle = std::numbers::pi * (3 - std::sqrt(5.0));
  const double unit = grid.step / std::sqrt(std::numbers::pi);
  const double reach = std::ceil(unit * std::sqrt(static_cast<double>(points)));
  const int extent = grid.window + 2 * (margin + static_cast<int>(reach));
  ScanPath path{{}, extent, extent};
  for (int k = 0; k < points; ++k) {
    const double radius = unit * std::sqrt(k + 0.5), angle = k * golden_angle;
    const int y = jittered(random, reach + radius * std::sin(angle), grid.jitter);
    path.positions.push_back({y, jittered(random, reach + radius * std::cos(angle), grid.jitter)});
  }
  return path;
}

}  // namespace superstep::data
