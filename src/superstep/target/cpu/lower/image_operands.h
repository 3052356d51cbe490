// Values as the images that convolutions and pooling read, and windows over them.
#pragma once

#include <expected>
#include <optional>
#include <vector>

#include "superstep/op/window/window.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// A value as the image its strides describe: [N, C], [N, C, W], [N, C, H, W] or, as a volume, [N, C, D, H, W]
// with contiguous channels.
std::expected<kernels::Image, Refusal> as_image(const Lowering& lowering, ValueId id);

// The sliding window of a convolution, of its gradients or of a pooling, with the padding that all its
// attributes together decide (op/window/window.h); over one and two axes it has depth 1, over one height 1
// too.
kernels::Window window_of(const Graph& graph, const Node& node);
// The same, an axis at a time.
std::vector<op::Window> windows_of(const Graph& graph, const Node& node);

// A convolution of few channels as one over window columns (kernels/window_columns.h): the same packed
// weights, fewer and longer products, and an input in any layout. Nothing where that gains nothing or cannot
// be.
struct ColumnConvolution {
  kernels::Convolution convolution;  // over the columns
  kernels::Convolution original;     // with an image that is not there: what packed weights depend on
  kernels::KernelPointer columns;    // makes the image that it reads
  std::size_t bytes = 0;             // of that image
};
std::optional<ColumnConvolution> over_window_columns(const Lowering& lowering, const Node& node, ValueId x,
                                                     ValueId y, const Shape& weights);

// A value that lies as no image, copied into one.
struct ImageCopy {
  kernels::Image image;
  kernels::KernelPointer copy;
  std::size_t bytes = 0;
};
std::expected<ImageCopy, Refusal> copied_into_image(const Lowering& lowering, ValueId id);

}  // namespace superstep::target::cpu
