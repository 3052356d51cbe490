#include "superstep/target/cpu/lower/image_operands.h"

#include <fmt/format.h>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/kernels/convolution/window_columns.h"
#include "superstep/target/cpu/kernels/move/copy.h"

namespace superstep::target::cpu {
namespace {

// [N, C, W], [N, C, H, W] or [N, C, D, H, W] without gaps.
kernels::Image dense_image_of(const Shape& shape, ElementType element) {
  const int rank = shape.rank();
  const std::int64_t planes = rank == 5 ? shape[2] : 1, rows = rank == 3 ? 1 : shape[rank - 2];
  kernels::Image image = kernels::dense_image(planes * rows, shape[rank - 1], shape[0], shape[1], element);
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

std::vector<op::Window> windows_of(const Graph& graph, const Node& node) {
  const Shape &x = graph.type(node.inputs[0]).shape, &y = graph.type(node.outputs[0]).shape;
  const std::vector<std::int64_t> image = op::spatial_extents(x);
  if (node.op == "GlobalAveragePool") {
    std::vector<op::Window> whole;
    for (const std::int64_t extent : image) whole.push_back({.input = extent, .kernel = extent});
    return whole;
  }
  if (node.op == "MaxPool" || node.op == "AveragePool") return op::pooling_windows(node.attributes, image);
  if (node.op == "superstep.AveragePoolGradient")
    return op::pooling_windows(node.attributes, op::spatial_extents(y));
  const op::ProductKind kind = op::traits_of(node.op).product_kind;
  if (kind == op::ProductKind::weight_gradient)
    return op::convolution_windows(node.attributes, image, op::spatial_extents(y));
  const std::vector<std::int64_t> kernel = op::spatial_extents(graph.type(node.inputs[1]).shape);
  return kind == op::ProductKind::transposed_convolution
             ? op::transposed_windows(node.attributes, image, kernel)
             : op::convolution_windows(node.attributes, image, kernel);
}

kernels::Window window_of(const Graph& graph, const Node& node) {
  const std::vector<op::Window> axes = windows_of(graph, node);
  kernels::Window window;
  const op::Window& across = axes.back();
  window.width = across.kernel;
  window.stride_w = across.stride;
  window.dilation_w = across.dilation;
  window.pad_left = across.pad_begin;
  if (axes.size() >= 2) {
    const op::Window& down = axes[axes.size() - 2];
    window.height = down.kernel;
    window.stride_h = down.stride;
    window.dilation_h = down.dilation;
    window.pad_top = down.pad_begin;
  }
  if (axes.size() == 3) {
    window.depth = axes[0].kernel;
    window.stride_d = axes[0].stride;
    window.dilation_d = axes[0].dilation;
    window.pad_front = axes[0].pad_begin;
  }
  return window;
}

std::expected<ImageCopy, Refusal> copied_into_image(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  const int rank = shape.rank();
  if (rank < 3 || rank > 5) return refuse("image", fmt::format("rank {} is not 3, 4 or 5", rank));
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
  if (!image_y) return std::nullopt;
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
                                       .window = window_of(lowering.graph(), node),
                                       .outputs = image_y->width,
                                       .planes = dense.planes};
  auto kernel = kernels::prepare(columns);
  if (!kernel) return std::nullopt;
  ColumnConvolution result;
  result.original = {.x = dense, .y = *image_y, .window = columns.window};
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
