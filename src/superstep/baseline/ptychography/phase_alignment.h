// Comparing a retrieved object with the true one. A magnitude does not tell a global phase, a shift and
// the twin conj(object(-r)): the best of each is removed first.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "superstep/baseline/ptychography/phase_retrieval.h"

namespace superstep::baseline {

struct AlignedObject {
  Field object;               // turned, shifted and scaled onto the truth
  bool twin = false;          // was the twin taken?
  std::vector<double> shift;  // along every axis, voxels, removed
  double overlap = 0;         // |<object, truth>| / (|object| |truth|) after alignment, in [0, 1]
};

// `object` and `truth` have `shape`. Shifts to a fraction of a voxel by the Fourier shift theorem.
AlignedObject align(std::span<const std::complex<float>> object, std::span<const std::complex<float>> truth,
                    const Shape& shape);

struct ShapeComparison {
  double iou = 0;         // of the voxels with a modulus of at least half that of the solid crystal, 1
  double phase_rms = 0;   // rad, where the true modulus is at least half; its mean removed
  double phase_mean = 0;  // rad, mean absolute error there
  double ssim = 0;        // structural similarity of the moduli
};

// `aligned` as align() gives it, `truth` with a modulus of 1 inside.
ShapeComparison compare_shapes(std::span<const std::complex<float>> aligned,
                               std::span<const std::complex<float>> truth, const Shape& shape);

// Mean structural similarity of two volumes with values in [0, 1], over all windows of 7 voxels a side that
// lie inside (Z. Wang et al., IEEE Trans. Image Processing 13, 600, 2004: K1 = 0.01, K2 = 0.03). Rank 3.
double structural_similarity(std::span<const float> a, std::span<const float> b, const Shape& shape);

// Moves the centre of mass of |object|^2 to the middle of the grid, by whole voxels, round the corners.
Field centered(std::span<const std::complex<float>> object, const Shape& shape);

}  // namespace superstep::baseline
