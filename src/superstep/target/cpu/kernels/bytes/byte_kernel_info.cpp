#include "superstep/target/cpu/kernels/bytes/byte_kernel_info.h"

#include <fmt/format.h>

namespace superstep::kernels {

// A result that is not f32 is staged in scratch.
Convolution geometry_of(const IntegerConvolution& c) {
  Convolution geometry{.x = c.x, .y = c.y, .window = c.window, .groups = c.groups, .epilogue = {}};
  geometry.y.type = ElementType::i32;
  return geometry;
}

std::expected<EpilogueRunner, std::string> byte_epilogue(const IntegerConvolution& c) {
  Image as_f32 = c.y;
  as_f32.type = ElementType::f32;
  return EpilogueRunner::prepare(c.epilogue, as_f32);
}

IntegerBlock block_of(const IntegerConvolution& c, const SimpleSteps& steps, const std::int32_t* shift,
                      const float* scale, std::int64_t channels) {
  return {.sums = nullptr,
          .shift = shift,
          .scale = scale,
          .bias = nullptr,
          .added = nullptr,
          .added_stride = 0,
          .slope = steps.slope,
          .result = nullptr,
          .result_stride = c.y.column_stride,
          .columns = 0,
          .channels = channels,
          .inverse_scale = 1 / c.y_scale,
          .zero_point = static_cast<float>(c.y_zero_point),
          .hard_swish = steps.hard_swish};
}

KernelInfo byte_kernel_info(const IntegerConvolution& c, const EpilogueRunner& epilogue,
                            const std::string& how) {
  KernelInfo info;
  info.name = fmt::format("integer convolution, {}{}{}", how,
                          c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue),
                          c.y.type == ElementType::u8 ? " + bytes" : "");
  info.flops = 2 * multiply_adds(geometry_of(c));
  info.bytes = static_cast<double>(c.x.element_count()) +
               static_cast<double>(c.y.element_count()) *
                   (static_cast<double>(size_in_bytes(c.y.type)) + epilogue.bytes_per_element()) +
               static_cast<double>(byte_pack_bytes(c));
  info.inputs = (c.y.type == ElementType::i32 ? 2 : 3) + epilogue.inputs();
  info.outputs = 1 + epilogue.outputs();
  info.weights = WeightLayout::taps_in_out_quads;
  info.arithmetic = ElementType::i8;
  return info;
}

}  // namespace superstep::kernels
