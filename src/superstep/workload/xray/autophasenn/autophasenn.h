// AutoPhaseNN's parts, that its files share: model.cpp (with the workload itself), physics.cpp, data.cpp,
// pictures.cpp.
#pragma once

#include <complex>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/op/core/builder.h"
#include "superstep/transform/training/loss.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Below it an amplitude is taken for empty space: the support.
inline constexpr double least_amplitude = 0.1;

// The magnitude of the far field of an object [N, 1, n, n, n] in twice as many voxels a side, divided by its
// largest, frequency zero in the middle: [N, 1, 2n, 2n, 2n], as a detector would see it without noise.
op::Var diffracted(op::Var amplitude, op::Var phase);

// The mean |predicted - measured| over the voxels of the pattern: no label is needed.
op::Var diffraction_loss(transform::LossPorts& ports);

// A crystal's voxels in place of the network (workload.h: BuildAnswer): the support is that of the answer
// that it starts from and one voxel around it, so that the shape can grow.
graph::Graph build_crystal_answer(const Options& model);

// Strained crystals with their patterns, of the size that the model is built for.
std::unique_ptr<Task> open_autophasenn(const TaskSettings& settings, const Options& model);

// A complex object in the middle half of the grid of its pattern, row-major (z, y, x).
using CrystalGrid = std::vector<std::complex<float>>;

// Of predictions: amplitude, where it is at least `least_amplitude`, times e^(i phase). Sample `at` of them.
CrystalGrid predicted_crystal(std::span<const Tensor> outputs, std::size_t at);
CrystalGrid true_crystal(const Fields& fields, std::int64_t index);

// What the pattern `index` says of a crystal, and how near it is to the true one.
struct CrystalQuality {
  double diffraction_l1 = 0;  // mean |magnitude - measured|, both divided by their largest
  double chi2 = 0;            // sum (s magnitude - measured)^2 / sum measured^2, s the best scale
  double iou = 0, phase_error = 0, ssim = 0;  // after global phase, shift and twin; rad, mean
  CrystalGrid aligned;                        // onto the truth
  std::vector<float> pattern;                 // magnitude / its largest, frequency zero in the middle
};
CrystalQuality crystal_quality(const Fields& fields, std::int64_t index, const CrystalGrid& crystal);

// The measured pattern with frequency zero first, as transforms have it.
std::vector<float> measured_magnitude(const Fields& fields, std::int64_t index);

inline constexpr int retrieval_starts = 10;  // of the conventional method

// Slices through true and predicted crystals, and their patterns.
std::string present_crystals(const Fields& fields, const Predictions& found, page::Page& page);

}  // namespace superstep::workload
