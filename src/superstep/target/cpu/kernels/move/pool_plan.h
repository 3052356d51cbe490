// What the kernels of pooling share: their geometry, and what they say about themselves. Internal to the
// kernels.
#pragma once

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/move/pool.h"

namespace superstep::kernels {

// The geometry of pooling is that of a convolution.
Convolution as_convolution(const Pool& pool);

KernelInfo describe_pooling(const Pool& pool, bool gradient);

}  // namespace superstep::kernels
