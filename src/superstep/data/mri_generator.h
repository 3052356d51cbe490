// Images and masks for U-Net: brain-MRI-like slices, or micrographs with ion-beam stripes.
#pragma once

#include "superstep/data/generator.h"

namespace superstep::data {

// Sample index is slice (index mod slices) of patient (index / slices). --out FOLDER, a name without
// extension, writes FOLDER/<case>/<case>_<slice>.tif and <case>_<slice>_mask.tif, as the public collection of
// lower-grade gliomas has them.
GeneratorEntry unet_256_generator();
GeneratorEntry unet_64_generator();

}  // namespace superstep::data
