// Effective conductivity of an image: the steady current between two electrodes on its left and right.
//
// div(sigma grad phi) = 0 on square cells, phi = 1 at the left edge, 0 at the right, no flux through top and
// bottom. Finite volumes: a face between cells of conductivity a and b has the coefficient 2ab/(a+b), a
// face between a cell and an electrode, half a cell away, 2a. The effective conductivity is current times
// length over (width times potential difference).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::data {

struct ConductivitySettings {
  double tolerance = 1e-8;  // of |residual| / |right side|
  int max_iterations = 500;
  bool keep_potential = false;
};

struct Conductivity {
  double effective = 0;     // in the unit of sigma, from the current through the left electrode
  double at_right = 0;      // the same from the right electrode; they differ by the unsolved residual
  bool percolates = false;  // is there a conducting path? Without one both are 0
  int iterations = 0;       // of conjugate gradients; 0 where the linear potential is the solution already
  double residual = 0;      // |residual| / |right side| reached
  std::vector<double> potential;  // [height, width] when asked for; NaN where no current can flow
};

// `sigma`: row-major [height, width], each >= 0; 0 is a perfect insulator. Cells without a conducting path
// (through cell faces) to both electrodes carry no current and are left out.
// Throws Error: invalid_argument (sizes, a negative or non-finite value), diverged (the iteration limit).
//
// Method: conjugate gradients with the multigrid cycle of conductivity_multigrid.h.
Conductivity effective_conductivity(std::span<const double> sigma, int width, int height,
                                    const ConductivitySettings& settings = {});

// Of a binary image: `conductor` for pixels that are not 0, `insulator` for those that are.
Conductivity effective_conductivity(std::span<const std::uint8_t> image, int width, int height,
                                    double conductor, double insulator,
                                    const ConductivitySettings& settings = {});

// The density of the current in the middle of every cell, [height, width]: the mean over its two faces in
// each direction, of the potential that a solve of `sigma` kept, for a potential difference of one over the
// whole width. 0 where no current can flow, and everywhere without a path. In units of sigma over a cell.
std::vector<float> current_density(const Conductivity& solved, std::span<const double> sigma, int width,
                                   int height);

}  // namespace superstep::data
