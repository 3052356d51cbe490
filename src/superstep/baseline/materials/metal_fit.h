// Fits classical potentials to energies and forces of a metal, as one would without a neural network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "superstep/baseline/baseline.h"
#include "superstep/baseline/materials/metal_potentials.h"
#include "superstep/file/atoms/labelled_frames.h"

namespace superstep::baseline {

using MetalFrames = data::LabelledFrames;
// A DeePMD-kit folder, an extended XYZ file or an HDF5 file of `superstep generate deepmd`. Every frame must
// have an energy and forces and one kind of atom; throws Error (bad_file) that names the frame otherwise.
MetalFrames read_metal_frames(const std::filesystem::path& path);

struct FittedPotentials {
  LennardJones<double> lennard_jones;
  Gupta<double> gupta;
  double lennard_jones_offset = 0, gupta_offset = 0;  // eV an atom
  data::SmoothCutoff cutoff;
};
// Least squares over energies an atom and force components, weighted so that 1 meV an atom counts like
// 30 meV/A. Throws Error (diverged) when no minimum is found.
FittedPotentials fit_metal(const std::vector<const data::DeepmdFrame*>& frames, double cutoff);

// Root mean square errors of an atom's energy in frames that were not fitted to, eV.
struct MetalErrors {
  double lennard_jones, gupta;
};
MetalErrors energy_errors(const FittedPotentials& fitted,
                          const std::vector<const data::DeepmdFrame*>& judged);

Entry deepmd_baseline();

}  // namespace superstep::baseline
