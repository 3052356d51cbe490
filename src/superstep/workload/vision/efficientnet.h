// EfficientNet: inverted bottlenecks with squeeze and excitation, scaled in width, depth and resolution
// together (M. Tan, Q. Le, ICML 2019).
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// image f32 [N, 3, 224, 224] -> logits f32 [N, 1000].
Workload efficientnet_b0();
// image f32 [N, 3, 380, 380] -> logits f32 [N, 1000].
Workload efficientnet_b4();

}  // namespace superstep::workload
