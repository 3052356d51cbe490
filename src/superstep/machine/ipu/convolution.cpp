#include "superstep/machine/ipu/convolution.h"

namespace superstep::machine::ipu {

std::int64_t Convolution::positions() const {
  std::int64_t count = batch;
  for (const Axis& axis : axes) count *= axis.output;
  return count;
}

std::int64_t Convolution::kernel_positions() const {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.kernel;
  return count;
}

double Convolution::macs() const {
  double count = static_cast<double>(groups * in_channels) * static_cast<double>(out_channels * batch);
  for (const Axis& axis : axes)
    count *= static_cast<double>(axis.output * axis.kernel) / static_cast<double>(axis.dilation);
  return count;
}

double Convolution::input_elements() const {
  double count = static_cast<double>(groups * in_channels * batch);
  for (const Axis& axis : axes) count *= static_cast<double>(axis.input);
  return count;
}

double Convolution::weight_elements() const {
  return static_cast<double>(groups * in_channels) * static_cast<double>(out_channels * kernel_positions());
}

double Convolution::output_elements() const {
  return static_cast<double>(groups * out_channels) * static_cast<double>(positions());
}

Convolution matrix_product(std::int64_t groups, std::int64_t m, std::int64_t k, std::int64_t n,
                           ElementType element, ElementType partials) {
  return {.groups = groups,
          .batch = m,
          .in_channels = k,
          .out_channels = n,
          .axes = {},
          .element = element,
          .partials = partials};
}

Convolution convolution_of(const op::ConvGeometry& geometry, ElementType element, ElementType partials) {
  Convolution convolution{.groups = geometry.group,
                          .batch = geometry.batch,
                          .in_channels = geometry.in_per_group,
                          .out_channels = geometry.out_per_group,
                          .axes = {},
                          .element = element == ElementType::f32 ? ElementType::f32 : ElementType::f16,
                          .partials = partials};
  for (const op::Window& window : geometry.windows)
    convolution.axes.push_back(
        {window.input, window.output, window.kernel, window.stride, window.dilation, 1});
  return convolution;
}

Pass pass_of(op::ProductKind kind) {
  if (kind == op::ProductKind::weight_gradient) return Pass::weight_gradient;
  return kind == op::ProductKind::transposed_convolution ? Pass::data_gradient : Pass::forward;
}

}  // namespace superstep::machine::ipu
