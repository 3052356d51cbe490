// The kernels of a convolution's three passes, in the order in which they are tried.
#include "superstep/target/cpu/kernels/convolution/convolution.h"

namespace superstep::kernels {

// clang-format off
SUPERSTEP_KERNELS(convolution_forward, Convolution,
                  depthwise_forward,
                  few_outputs_forward,
                  winograd_forward,
                  libxsmm_forward,
                  portable_forward)

SUPERSTEP_KERNELS(convolution_input_gradient, Convolution,
                  depthwise_input_gradient,
                  few_inputs_gradient,
                  winograd_input_gradient,
                  libxsmm_input_gradient,
                  portable_input_gradient)

SUPERSTEP_KERNELS(convolution_weight_gradient, Convolution,
                  depthwise_weight_gradient,
                  winograd_weight_gradient,
                  libxsmm_weight_gradient,
                  portable_weight_gradient)
// clang-format on

}  // namespace superstep::kernels
