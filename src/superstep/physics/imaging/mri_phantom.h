// Heads for brain-MRI-like slices: deformed ellipsoids of scalp, skull, fluid, folded grey ribbon and white
// matter with ventricles, and in the brain a lesion of one to four blobs.
//
// Coordinates: x to the right and y downwards in a slice, z from slice to slice; the head fills [-1, 1] in
// each, a slice shows [-1.1, 1.1].
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/physics/imaging/mri_signal.h"

namespace superstep::data {

// A wave along one direction: weight cos(x kx + y ky + z kz + phase).
struct Wave {
  double kx = 0, ky = 0, kz = 0, phase = 0, weight = 0;
  double at(double x, double y, double z) const;
};

struct LesionBlob {
  double x = 0, y = 0, z = 0;
  double rx = 0, ry = 0, rz = 0;
  std::vector<Wave> roughness;  // a Gaussian field of variance 1, its wavelength about the radius
  // Positive inside, 0 on the surface, about 1 at the centre.
  double inside(double x, double y, double z) const;
};

// A small bright spot of white matter that is no lesion, as ageing leaves them.
struct BrightSpot {
  double x = 0, y = 0, z = 0, radius = 0;
};

// Everything that is decided once for a patient.
struct Head {
  explicit Head(RandomStream& random);

  double half_width, half_length;  // of the head's ellipse, about 0.75 and 0.95
  std::array<Wave, 6> outline;     // of the radius over angle (kx) and z
  std::array<Wave, 24> folds;      // sulci over angle and z
  double fold_depth, ribbon;       // of sulci, and thickness of the grey ribbon
  double ventricle_size;
  std::vector<LesionBlob> lesion;
  double infiltration;             // share of lesion in its tissue at its surface, 0.35 to 0.7; grows inwards
  std::array<Wave, 4> unevenness;  // of that share
  double necrosis;                 // `inside` beyond which the lesion has decayed to fluid; 2 for nowhere
  double oedema;                   // width of the fringe in units of `inside`, 0 for none
  double rim_contrast;             // agent in the rim, mmol/l; 0 for none
  std::vector<BrightSpot> spots;
  double bias_amplitude;  // of the coils' uneven gain, 0.05 to 0.2
  std::array<Wave, 2> bias;
  double signal_to_noise;  // of white matter, 20 to 40
};

struct MriSlice {
  std::vector<std::uint8_t> pixels;  // [3, size, size]: T1-weighted, FLAIR, T1-weighted with contrast agent
  std::vector<std::uint8_t> mask;    // [size, size], 1 where at least half of the pixel is lesion (no oedema)
};

// The slice at height z. `noise` is a stream of the slice's own.
MriSlice draw_slice(const Head& head, double z, int size, RandomStream& noise);

}  // namespace superstep::data
