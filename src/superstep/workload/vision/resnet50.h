// ResNet-50, version 1.5: stride in the 3x3 convolution (K. He et al., Deep Residual Learning for Image
// Recognition, CVPR 2016).
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// image f32 [N, 3, 224, 224] -> logits f32 [N, 1000].
Workload resnet50();

}  // namespace superstep::workload
