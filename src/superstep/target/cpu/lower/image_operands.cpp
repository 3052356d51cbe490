#include "superstep/target/cpu/lower/image_operands.h"

#include <fmt/format.h>

#include "superstep/target/cpu/kernels/convolution/window_columns.h"
#include "superstep/target/cpu/kernels/move/copy.h"

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

// [N, C, H, W] or [N, C, D, H, W] without gaps.
kernels::Image dense_image_of(const Shape& shape, ElementType element) {
  const int rank = shape.rank();
  const std::int64_t planes = rank == 5 ? shape[2] : 1;
  kernels::Image image =
      kernels::dense_image(planes * shape[rank - 2], shape[rank - 1], shape[0], shape[1], element);
  image.planes = planes;
  return image;
}

// Rows of an image [.., H, W] or of the planes of a volume [.., D, H, W], and the distance between them.
Refusal set_rows(kernels::Image& image, const Shape& shape, const Strides& strides) {
  const int rank = shape.rank();
  const std::int64_t rows = shape[rank - 2], row = strides[static_cast<std::size_t>(rank - 2)];
  image.planes = rank == 5 ? shape[2] : 1;
  image.height = image.planes * rows;
  if (rows > 1) image.row_stride = row;
  if (image.planes == 1) return {};
  if (rows > 1 && strides[2] != rows * row) return {"image", "there are gaps between the planes"};
  if (rows == 1) image.row_stride = strides[2];
  return {};
}

}  // namespace

std::expected<kernels::Image, Refusal> as_image(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  const Strides& strides = lowering.view(id).strides;
  const int rank = shape.rank();
  if (rank < 2 || rank > 5) return refuse("image", fmt::format("rank {} is not 2, 3, 4 or 5", rank));
  kernels::Image image;
  image.type = lowering.element_in_memory(id);
  image.batch = shape[0];
  image.channels = shape[1];
  if (rank >= 3) image.width = shape[rank - 1];
  if (image.channels > 1 && strides[1] != 1) return refuse("image", "channels are not contiguous in memory");
  const std::int64_t width_stride = rank >= 3 ? strides[static_cast<std::size_t>(rank - 1)] : 0;
  // A dimension of one element may have any stride: take the one that makes columns equally spaced.
  if (image.batch > 1)
    image.column_stride = strides[0];
  else
    image.column_stride = image.width > 1 ? width_stride : image.channels;
  if (image.width > 1 && width_stride != image.batch * image.column_stride)
    return refuse("image", "the micro-batch does not lie between width and channels");
  image.row_stride = image.width * image.batch * image.column_stride;
  if (rank >= 4)
    if (Refusal gaps = set_rows(image, shape, strides); !gaps.reason.empty())
      return std::unexpected(std::move(gaps));
  if (const std::string fault = kernels::fault_of(image); !fault.empty()) return refuse("image", fault);
  return image;
}

std::expected<kernels::Window, Refusal> window_of(const Node& node, const Shape& input,
                                                  const std::vector<std::int64_t>& kernel) {
  if (kernel.size() > 3) return refuse("window", fmt::format("a window over {} axes", kernel.size()));
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
  if (kernel.size() >= 2) {
    window.height = kernel[last - 1];
    window.stride_h = strides[last - 1];
    window.dilation_h = dilations[last - 1];
    window.pad_top = pads[last - 1];
  }
  if (kernel.size() == 3) {
    window.depth = kernel[0];
    window.stride_d = strides[0];
    window.dilation_d = dilations[0];
    window.pad_front = pads[0];
  }
  return window;
}

std::expected<ImageCopy, Refusal> copied_into_image(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  const int rank = shape.rank();
  if (rank != 4 && rank != 5) return refuse("image", fmt::format("rank {} is not 4 or 5", rank));
  const ElementType element = lowering.element_in_memory(id);
  ImageCopy result{dense_image_of(shape, element), nullptr,
                   static_cast<std::size_t>(shape.element_count()) * size_in_bytes(element)};
  auto copy = kernels::prepare(kernels::StridedCopy{.extents = shape.extents(),
                                                    .x_strides = lowering.view(id).strides,
                                                    .y_strides = dense_strides(shape, image_order(rank)),
                                                    .x_type = element,
                                                    .y_type = element});
  if (!copy) return std::unexpected(copy.error());
  result.copy = std::move(*copy);
  return result;
}

std::optional<ColumnConvolution> over_window_columns(const Lowering& lowering, const Node& node, ValueId x,
                                                     ValueId y, const Shape& weights) {
  const Shape& shape = lowering.shape(x);
  if (lowering.element_in_memory(x) != ElementType::f32 || !has_few_channels(node, lowering.type(x), weights))
    return std::nullopt;
  const auto image_y = as_image(lowering, y);
  const auto window = window_of(node, shape, {weights.begin() + 2, weights.end()});
  if (!image_y || !window) return std::nullopt;
  const Strides& strides = lowering.view(x).strides;
  const auto last = static_cast<std::size_t>(shape.rank() - 1);
  if (last == 4 && shape[2] > 1 && strides[2] != shape[3] * strides[3]) return std::nullopt;  // planes apart
  const kernels::Image dense = dense_image_of(shape, ElementType::f32);
  const kernels::WindowColumns columns{.height = dense.height,
                                       .width = dense.width,
                                       .batch = shape[0],
                                       .channels = shape[1],
                                       .row = strides[last - 1],
                                       .column = strides[last],
                                       .sample = strides[0],
                                       .channel = strides[1],
                                       .window = *window,
                                       .outputs = image_y->width,
                                       .planes = dense.planes};
  auto kernel = kernels::prepare(columns);
  if (!kernel) return std::nullopt;
  ColumnConvolution result;
  result.original = {.x = dense, .y = *image_y, .window = *window};
  result.convolution = result.original;
  result.convolution.x = kernels::columns_image(columns);
  result.convolution.window.width = result.convolution.window.stride_w =
      result.convolution.window.dilation_w = 1;
  result.convolution.window.pad_left = 0;
  result.columns = std::move(*kernel);
  result.bytes = static_cast<std::size_t>(result.convolution.x.element_count()) * sizeof(float);
  return result;
}

}  // namespace superstep::target::cpu
