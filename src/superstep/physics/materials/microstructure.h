// Two-phase microstructures of composite solid-state-battery cathodes: insulating particles of active
// material in a conducting electrolyte, as square images of one byte a pixel, conductor 1, insulator 0.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

struct Microstructure {
  explicit Microstructure(int pixels)
      : size(pixels), conductor(static_cast<std::size_t>(pixels) * static_cast<std::size_t>(pixels), 1) {}
  std::uint8_t& at(int x, int y) {
    return conductor[static_cast<std::size_t>(y) * static_cast<std::size_t>(size) +
                     static_cast<std::size_t>(x)];
  }
  std::uint8_t at(int x, int y) const { return const_cast<Microstructure*>(this)->at(x, y); }
  double insulator_fraction() const;

  int size;
  std::vector<std::uint8_t> conductor;  // row-major, size x size
};

// Particles of the active material: ellipses whose radius (of the disc of equal area) is log-normal.
struct ParticlePacking {
  double fraction = 0.5;  // area to cover
  double median_radius_px = 11;
  double sigma_ln = 0.3;
  double ellipse_share = 0.3;  // of the particles; the others are discs
  double max_aspect = 1.5;     // of the ellipses, uniform from 1
  double max_overlap = 0.05;   // share of a new particle's pixels that may be covered already
};

// Random insertion from large to small until the fraction is reached. A particle that finds no room in 200
// trials is made a tenth smaller; one that has shrunk below 3 px ends the insertion, so a dense packing may
// stay a little below the fraction that was asked for.
Microstructure pack_particles(RandomStream& random, int size, const ParticlePacking& packing);

// Discs of uniform radius at uniform positions, overlapping freely, until the fraction is reached.
Microstructure overlapping_discs(RandomStream& random, int size, double min_radius_px, double max_radius_px,
                                 double fraction);

// The `fraction` of pixels with the largest values of a Gaussian field of that 1/e correlation length.
Microstructure threshold_field(RandomStream& random, int size, double correlation_px, double fraction);

// Insulating cracks: `count` wandering lines 1 to 2 px wide, 30 to 120 px long.
void add_cracks(RandomStream& random, Microstructure& image, int count);

// What a random section of a cathode is drawn from, and one draw.
struct SectionRanges {
  double particle_share = 0.5;  // of the sections; the others are thresholded fields
  double fraction_low = 0.35, fraction_high = 0.65;
  double crack_share = 0.2;
};
struct Section {
  bool is_field = false;
  double length_px = 0;  // median radius of the particles (8 to 14), or 1/e correlation length (6 to 20)
  double fraction = 0, max_overlap = 0;
  int cracks = 0;
};
// The fraction of a field is at most 1/2, the percolation threshold of a symmetric field in two dimensions:
// above it nearly no image conducts.
Section draw_section(RandomStream& random, const SectionRanges& ranges);
Microstructure build_section(RandomStream& random, int size, const Section& section);

}  // namespace superstep::data
