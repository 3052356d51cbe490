// Sliding windows along spatial axes: the geometry that convolution and pooling share, and that kernels of
// other targets ask for.
#pragma once

#include <string>
#include <vector>

#include "superstep/base/shape.h"
#include "superstep/graph/attributes.h"

namespace superstep::op {

// One spatial axis of a convolution (or pooling): output o reads the inputs
// o * stride - pad_begin + k * dilation for k in [0, kernel), those outside [0, input) being padding.
struct Window {
  std::int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1;
  std::int64_t pad_begin = 0, pad_end = 0;

  std::int64_t reach() const { return (kernel - 1) * dilation + 1; }
  // Outputs [first, last) whose tap k lies inside the input.
  std::int64_t first_output(std::int64_t k) const;
  std::int64_t last_output(std::int64_t k) const;
};

// The number of spatial axes an operator works on is at most three here.
inline constexpr int max_spatial_axes = 3;

// All functions read the attributes strides, dilations, pads, auto_pad and throw Error (bad_graph) when they
// do not fit the rank or leave no output.

// Of Conv: `input` and `kernel` are spatial extents.
std::vector<Window> convolution_windows(const graph::Attributes& attributes,
                                        const std::vector<std::int64_t>& input,
                                        const std::vector<std::int64_t>& kernel);
// Of MaxPool, AveragePool and LpPool: kernel_shape and ceil_mode too.
std::vector<Window> pooling_windows(const graph::Attributes& attributes,
                                    const std::vector<std::int64_t>& input);
// Of ConvTranspose, as the convolution that it transposes: `output` is the small side, Window::input the
// large one. Reads output_padding and output_shape too.
std::vector<Window> transposed_windows(const graph::Attributes& attributes,
                                       const std::vector<std::int64_t>& output,
                                       const std::vector<std::int64_t>& kernel);

std::vector<std::int64_t> spatial_extents(const Shape& shape);  // without the first two axes

}  // namespace superstep::op
