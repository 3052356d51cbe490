// Handwriting-like digits for the image auto-encoder.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// --out with a name that contains "idx3-ubyte" (train-images-idx3-ubyte, with .gz or without) writes images
// there, and labels to the name with "idx1-ubyte" and "labels" in place of "images".
GeneratorEntry digits_generator();

}  // namespace superstep::data
