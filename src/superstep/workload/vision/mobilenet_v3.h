// MobileNetV3: depthwise convolutions, squeeze and excitation, hard swish (A. Howard et al., Searching for
// MobileNetV3, ICCV 2019).
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// image f32 [N, 3, 224, 224] -> logits f32 [N, 1000].
Workload mobilenet_v3_small();
Workload mobilenet_v3_large();

}  // namespace superstep::workload
