// The small image classifier of Graphcore's CIFAR-10 example: four convolutions, two dense layers.
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// image f32 [N, 3, 32, 32], pixels divided by 255 -> logits f32 [N, 10] (softmax is left to the loss).
Workload cifar10_cnn();

}  // namespace superstep::workload
