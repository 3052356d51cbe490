// Clusters of flexible water with their energies and forces (workload schnet): packed at random, brought to a
// nearby minimum, and for one part of the samples moved by a heat bath of 100 to 400 K.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// .xyz and .extxyz are written as extended XYZ, anything else as HDF5.
GeneratorEntry schnet_generator();

}  // namespace superstep::data
