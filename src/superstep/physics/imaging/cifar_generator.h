// Labelled images of 10 and 100 classes, made by procedure, in the place of CIFAR-10, CIFAR-100 and, at
// 224 pixels, of larger collections.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// --out NAME.bin writes the CIFAR binary format: of each image one byte of label (100 classes: two, the
// coarse one first, which is the palette), then red, green and blue planes.
GeneratorEntry cifar10_generator();  // "cifar10-cnn"
GeneratorEntry resnet50_generator();
GeneratorEntry efficientnet_b0_generator();
GeneratorEntry efficientnet_b4_generator();
GeneratorEntry mobilenet_v3_small_generator();
GeneratorEntry mobilenet_v3_large_generator();
GeneratorEntry vit_base_generator();
GeneratorEntry resnext101_generator();

}  // namespace superstep::data
