// Convolutions with the element-wise operators that follow them.
#pragma once

#include "superstep/target/cpu/lower/product_target.h"

namespace superstep::target::cpu {

// `transposed`: a ConvTranspose.
Lowered lower_convolution(Lowering& lowering, const Node& node, ProductTarget target, bool transposed);

// The sum over the window of `node` that makes y of x, both images; x is the copy where there is one.
std::expected<kernels::Convolution, Refusal> describe_convolution(const Lowering& lowering, const Node& node,
                                                                  ValueId x, ValueId y,
                                                                  const ImageCopy* copy = nullptr);

}  // namespace superstep::target::cpu
