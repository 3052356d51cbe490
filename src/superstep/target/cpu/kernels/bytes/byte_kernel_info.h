// What kernels of convolutions on bytes share: what they say of themselves, and how their blocks begin.
// Internal to the kernels.
#pragma once

#include <expected>
#include <string>

#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"
#include "superstep/target/cpu/kernels/bytes/simple_steps.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/epilogue_run.h"

namespace superstep::kernels {

// `how`: the kernel's own words, between "integer convolution, " and the epilogue's.
KernelInfo byte_kernel_info(const IntegerConvolution& convolution, const EpilogueRunner& epilogue,
                            const std::string& how);

// The epilogue of a result that is f32 until it is made bytes; or why there is no such epilogue.
std::expected<EpilogueRunner, std::string> byte_epilogue(const IntegerConvolution& convolution);

// A block of channels without sums, result and columns. `shift` and `scale` begin at its first channel.
IntegerBlock block_of(const IntegerConvolution& convolution, const SimpleSteps& steps,
                      const std::int32_t* shift, const float* scale, std::int64_t channels);

// What is convolved, in the words of f32's kernels: for tables, and to count.
Convolution geometry_of(const IntegerConvolution& convolution);

}  // namespace superstep::kernels
