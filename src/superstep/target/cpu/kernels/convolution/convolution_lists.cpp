// The kernels of a convolution's three passes, in the order in which they are tried.
#include "superstep/target/cpu/kernels/convolution/convolution_kernels.h"
#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"

namespace superstep::kernels {

const ImplementationList<Convolution>& convolution_forward() {
  static const ImplementationList<Convolution> list({
      {"depthwise", prepare_depthwise_forward},
      {"few outputs", prepare_forward<ProductMaker::dot>},
      {"winograd", prepare_winograd<ConvolutionPass::forward>},
      {"libxsmm", prepare_forward<ProductMaker::libxsmm>},
      {"portable", prepare_forward<ProductMaker::portable>},
  });
  return list;
}

const ImplementationList<Convolution>& convolution_input_gradient() {
  static const ImplementationList<Convolution> list({
      {"depthwise", prepare_depthwise_input_gradient},
      {"few outputs", prepare_input_gradient<ProductMaker::dot>},
      {"winograd", prepare_winograd<ConvolutionPass::input_gradient>},
      {"libxsmm", prepare_input_gradient<ProductMaker::libxsmm>},
      {"portable", prepare_input_gradient<ProductMaker::portable>},
  });
  return list;
}

const ImplementationList<Convolution>& convolution_weight_gradient() {
  static const ImplementationList<Convolution> list({
      {"depthwise", prepare_depthwise_weight_gradient},
      {"winograd", prepare_winograd<ConvolutionPass::weight_gradient>},
      {"libxsmm", prepare_weight_gradient<ProductMaker::libxsmm>},
      {"portable", prepare_weight_gradient<ProductMaker::portable>},
  });
  return list;
}

}  // namespace superstep::kernels
