// Yields of Suzuki-Miyaura couplings from kinetics (workload yieldgnn): the reactions of the full factorial
// in an order shuffled by the seed, so that the first 4,543 are what is left after dropping at random; later
// samples measure them again.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// .json is a list of reactions with their molecules and descriptors, .csv and .tsv a table, anything else
// HDF5.
GeneratorEntry yieldgnn_generator();

}  // namespace superstep::data
