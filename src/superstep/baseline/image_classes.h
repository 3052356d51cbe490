// Classes of images by hand-made features and a linear classifier.
#pragma once

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

Entry cifar10_classifier();   // "cifar10-cnn"
Entry resnet50_classifier();  // "resnet50"

}  // namespace superstep::baseline
