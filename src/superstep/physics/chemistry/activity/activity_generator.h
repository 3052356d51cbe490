// Molecules and whether they bind (workload gin): drawn by a grammar, measured in an assay with noise.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/physics/chemistry/molecule.h"
#include "superstep/physics/generator.h"

namespace superstep::data {

// .csv and .tsv hold SMILES and labels; anything else is HDF5.
GeneratorEntry gin_generator();

}  // namespace superstep::data
