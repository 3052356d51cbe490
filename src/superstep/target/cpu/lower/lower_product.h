// Convolutions and matrix products, with the element-wise operators that follow them.
#pragma once

#include <optional>

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// The product of a fusion group, its followers as the kernel's epilogue. `group` may be null: the product
// alone. Refuses when the followers are not an epilogue or no kernel takes the shapes.
Lowered lower_product(Lowering& lowering, NodeId product, const FusionGroup* group);

// Whether the group is a pointwise convolution whose result a depthwise one alone reads, so that the two may
// run as one step (kernels/expanded_depthwise.h).
bool expands_for_depthwise(const Lowering& lowering, const FusionGroup& group);
// The depthwise convolution with its followers, and the expansion in front of it. `group` may be null.
Lowered lower_expanded_depthwise(Lowering& lowering, const FusionGroup& expansion, NodeId depthwise,
                                 const FusionGroup* group);

// A value as the image its strides describe: [N, C], [N, C, W] or [N, C, H, W] with contiguous channels.
std::expected<kernels::Image, Refusal> as_image(const Lowering& lowering, ValueId id);

// The sliding window of a convolution or pooling node over an input of this shape; two-dimensional, a
// one-dimensional one has height 1.
std::expected<kernels::Window, Refusal> window_of(const Node& node, const Shape& input,
                                                  const std::vector<std::int64_t>& kernel);

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

// Whether a convolution [out, in, taps...] over x would be one over window columns.
bool has_few_channels(const Node& node, const graph::ValueType& x, const Shape& weights);

}  // namespace superstep::target::cpu
