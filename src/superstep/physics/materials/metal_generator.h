// Frames of molecular dynamics of a Sutton-Chen metal with energies, forces and virials (workload deepmd).
//
// Trajectories differ in temperature and volume; each is equilibrated in a heat bath and sampled at
// intervals. Sample i is frame (i / 32) mod frames of one of 32 trajectories that go side by side, so that
// consecutive samples can be made on different threads; split by the field `trajectory`.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// Written by extension: .xyz and .extxyz are extended XYZ, a path without an extension is a DeePMD-kit
// folder, anything else HDF5.
GeneratorEntry deepmd_generator();

}  // namespace superstep::data
