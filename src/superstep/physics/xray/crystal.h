// Strained nanocrystals for Bragg coherent diffraction: a faceted shape, a displacement field projected on
// the scattering vector, and the complex object amplitude * exp(i phase) that the far field transforms.
#pragma once

#include <array>
#include <vector>

#include "superstep/base/option_range.h"
#include "superstep/base/random.h"

namespace superstep::data {

using VoxelVector = std::array<double, 3>;  // (z, y, x), in voxels where it is a place

inline double dot(const VoxelVector& a, const VoxelVector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// A half-space: inside where normal . r <= distance.
struct Facet {
  VoxelVector normal{};  // of length 1
  double distance = 0;   // voxels from the crystal's origin
};

// A convex crystal with facets of the fcc families {111}, {100} and {110}.
struct CrystalShape {
  std::vector<Facet> facets;  // 8 to 20
  VoxelVector origin{};       // in voxel coordinates of the grid: the crystal's box lies in its middle
  double diameter = 0;        // largest distance of two of its points, voxels

  // Depth below the nearest facet, negative outside.
  double depth(const VoxelVector& from_origin) const;
};
// `size` voxels along a side of the grid; the crystal fits with its soft edge when diameter <= size - 2.
CrystalShape draw_crystal(RandomStream& random, int size, double diameter);

// A straight dislocation: the phase winds once around its line.
struct Dislocation {
  enum class Kind { none, screw, edge } kind = Kind::none;
  double sign = 1;
  VoxelVector point{}, line{}, burgers{};  // a point of the line from the origin; unit vectors
};

// What the phase Q.u of a crystal is made of. Lengths in voxels.
struct Displacement {
  double rms = 0;  // rad, of the smooth part inside the crystal
  double polynomial_weight = 0, field_weight = 0, relaxation_weight = 0;
  std::array<double, 16> polynomial{};  // coefficients of the second- and third-order monomials of r / radius
  double correlation = 0;               // length l of the random field: covariance exp(-r^2 / (2 l^2))
  std::vector<std::array<double, 4>> waves;  // of the random field: wave vector (z, y, x) and phase
  VoxelVector scattering{};                  // direction of Q
  double relaxation_depth = 0;
  Dislocation dislocation;
};
struct DisplacementSettings {
  Range rms{0.1, 1.2};          // rad
  Range correlation{0.3, 0.8};  // of the diameter
  double dislocations = 0.15;   // share of the crystals that have one
};
Displacement draw_displacement(RandomStream& random, const CrystalShape& shape,
                               const DisplacementSettings& settings);

// size^3 values, row-major (z, y, x).
struct CrystalObject {
  int size = 0;
  std::vector<float> amplitude;  // 1 inside, 0 outside, linear over one voxel at the surface
  std::vector<float> phase;      // rad in (-pi, pi], mean 0 over the crystal before wrapping; 0 outside
};
CrystalObject render(const CrystalShape& shape, const Displacement& displacement, int size);

}  // namespace superstep::data
