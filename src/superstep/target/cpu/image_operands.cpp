#include <fmt/format.h>

#include "superstep/target/cpu/kernels/window_columns.h"
#include "superstep/target/cpu/lower_product.h"

namespace superstep::target::cpu {
namespace {

// Padding at the start of each spatial axis; ONNX's SAME_UPPER puts the odd one at the end.
std::vector<std::int64_t> pads_of(const Node& node, const Shape& input,
                                  const std::vector<std::int64_t>& kernel,
                                  const std::vector<std::int64_t>& strides,
                                  const std::vector<std::int64_t>& dilations) {
  const std::string mode = node.attributes.text("auto_pad", "NOTSET");
  const std::size_t spatial = kernel.size();
  std::vector<std::int64_t> pads =
      node.attributes.integers("pads", std::vector<std::int64_t>(2 * spatial, 0));
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return pads;
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t extent = input[static_cast<int>(i) + 2];
    const std::int64_t outputs = (extent + strides[i] - 1) / strides[i];
    const std::int64_t total =
        std::max<std::int64_t>(0, (outputs - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - extent);
    pads[i] = mode == "SAME_UPPER" ? total / 2 : (total + 1) / 2;
  }
  return pads;
}

}  // namespace

std::expected<kernels::Image, Refusal> as_image(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  const Strides& strides = lowering.view(id).strides;
  const int rank = shape.rank();
  if (rank < 2 || rank > 4) return refuse("image", fmt::format("rank {} is not 2, 3 or 4", rank));
  kernels::Image image;
  image.type = lowering.element_in_memory(id);
  image.batch = shape[0];
  image.channels = shape[1];
  if (rank >= 3) image.width = shape[rank - 1];
  if (rank == 4) image.height = shape[2];
  if (image.channels > 1 && strides[1] != 1) return refuse("image", "channels are not contiguous in memory");
  const std::int64_t width_stride = rank >= 3 ? strides[static_cast<std::size_t>(rank - 1)] : 0;
  // A dimension of one element may have any stride: take the one that makes columns equally spaced.
  if (image.batch > 1)
    image.column_stride = strides[0];
  else
    image.column_stride = image.width > 1 ? width_stride : image.channels;
  if (image.width > 1 && width_stride != image.batch * image.column_stride)
    return refuse("image", "the micro-batch does not lie between width and channels");
  image.row_stride = image.height > 1 ? strides[2] : image.width * image.batch * image.column_stride;
  if (const std::string fault = kernels::fault_of(image); !fault.empty()) return refuse("image", fault);
  return image;
}

std::expected<kernels::Window, Refusal> window_of(const Node& node, const Shape& input,
                                                  const std::vector<std::int64_t>& kernel) {
  if (kernel.size() > 2) return refuse("window", "three-dimensional windows have no kernel");
  const std::vector<std::int64_t> ones(kernel.size(), 1);
  const auto strides = node.attributes.integers("strides", ones);
  const auto dilations = node.attributes.integers("dilations", ones);
  const auto pads = pads_of(node, input, kernel, strides, dilations);
  kernels::Window window;
  const std::size_t last = kernel.size() - 1;
  window.width = kernel[last];
  window.stride_w = strides[last];
  window.dilation_w = dilations[last];
  window.pad_left = pads[last];
  if (kernel.size() == 2) {
    window.height = kernel[0];
    window.stride_h = strides[0];
    window.dilation_h = dilations[0];
    window.pad_top = pads[0];
  }
  return window;
}

std::optional<ColumnConvolution> over_window_columns(const kernels::Convolution& c) {
  constexpr std::int64_t few_channels = 4, longest = 64;
  const bool gains = c.groups == 1 && c.x.channels <= few_channels && c.window.width > 1 &&
                     c.x.channels * c.window.width <= longest;
  if (!gains || c.x.type != ElementType::f32) return std::nullopt;
  const kernels::WindowColumns columns{.x = c.x, .window = c.window, .outputs = c.y.width};
  auto kernel = kernels::prepare(columns);
  if (!kernel) return std::nullopt;
  ColumnConvolution result{c, std::move(*kernel), 0};
  result.convolution.x = kernels::columns_image(columns);
  result.convolution.window.width = result.convolution.window.stride_w = result.convolution.window.dilation_w = 1;
  result.convolution.window.pad_left = 0;
  result.bytes = static_cast<std::size_t>(result.convolution.x.element_count()) * sizeof(float);
  return result;
}

}  // namespace superstep::target::cpu
