// Battery cathodes: microstructure, striped micrograph, and the effective conductivity solved for each.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// Option --out NAME.tif writes the images as pages of a TIFF file and the numbers to NAME.csv beside it.
GeneratorEntry conductivity_generator();

}  // namespace superstep::data
