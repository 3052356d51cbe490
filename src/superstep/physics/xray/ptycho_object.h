// Samples of a ptychography experiment: thickness maps of the structures that such samples have, and the
// complex transmission of a map.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

// A dense row-major picture; every value in [0, 1] for a thickness map (1 is the thickest spot).
struct Map {
  int height = 0, width = 0;
  std::vector<float> values;

  Map() = default;
  Map(int rows, int columns, float value = 0)
      : height(rows), width(columns), values(static_cast<std::size_t>(rows) * columns, value) {}
  float& at(int y, int x) { return values[static_cast<std::size_t>(y) * width + x]; }
  float at(int y, int x) const { return values[static_cast<std::size_t>(y) * width + x]; }
};

// The single structures. Edges are one pixel soft; every draw comes from `random`.
Map siemens_star(RandomStream& random, int height, int width);    // spokes about a point
Map line_patterns(RandomStream& random, int height, int width);   // patches of gratings
Map gaussian_blobs(RandomStream& random, int height, int width);  // a Gaussian field, thresholded
Map dead_leaves(RandomStream& random, int height, int width);     // discs and polygons over each other
Map voronoi_grains(RandomStream& random, int height, int width);  // grains with thin boundaries

// A weighted mean of two or three of the structures.
Map thickness_map(RandomStream& random, int height, int width);

// What a thickness does to the wave: O = exp(-2 pi (beta + i delta) t / wavelength), that is
// arg O = -2 pi delta t / wavelength and |O| = exp(-2 pi beta t / wavelength).
struct Material {
  double energy_kev = 8.0;             // photon energy
  double delta = 4.8e-5;               // 1 - real part of the refractive index
  double beta_over_delta = 0.1;        // absorption
  double max_phase = 0.99 * 3.141592;  // rad, the phase shift of thickness 1; below pi: no wrapping

  double wavelength() const { return 1.23984198e-9 / energy_kev; }  // m
  double max_thickness() const;                                     // m
};

std::vector<std::complex<float>> transmission(const Map& thickness, const Material& material);

}  // namespace superstep::data
