#include "superstep/op/window/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/integers.h"
#include "superstep/op/core/checks.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

constexpr std::int64_t largest = std::int64_t{1} << 40;  // keeps all sums far from overflow

Extents spatial_attribute(const graph::Attributes& attributes, const char* name, std::size_t count,
                          std::int64_t otherwise, std::int64_t least) {
  const Extents values = attributes.integers(name, Extents(count, otherwise));
  require(values.size() == count,
          fmt::format("attribute '{}' has {} elements, expected {}", name, values.size(), count));
  for (std::int64_t value : values)
    require(value >= least && value < largest,
            fmt::format("attribute '{}' holds {}, expected {} or more", name, value, least));
  return values;
}

enum class AutoPad { explicit_pads, same_upper, same_lower, valid };

AutoPad auto_pad_of(const graph::Attributes& attributes) {
  const std::string text = attributes.text("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::explicit_pads;
  if (text == "SAME_UPPER") return AutoPad::same_upper;
  if (text == "SAME_LOWER") return AutoPad::same_lower;
  if (text == "VALID") return AutoPad::valid;
  refuse(fmt::format("attribute 'auto_pad' is '{}', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", text));
}

// Kernel, stride, dilation and explicit pads of each axis.
std::vector<Window> bare_windows(const graph::Attributes& attributes, const Extents& kernel) {
  const std::size_t count = kernel.size();
  if (count < 1 || count > max_spatial_axes)
    throw Error(ErrorCode::unsupported, fmt::format("{} spatial axes; 1 to 3 are supported", count));
  const Extents strides = spatial_attribute(attributes, "strides", count, 1, 1);
  const Extents dilations = spatial_attribute(attributes, "dilations", count, 1, 1);
  const Extents pads = spatial_attribute(attributes, "pads", 2 * count, 0, 0);
  std::vector<Window> windows(count);
  for (std::size_t i = 0; i < count; ++i) {
    require(kernel[i] >= 1 && kernel[i] < largest, fmt::format("a kernel extent is {}", kernel[i]));
    windows[i] = {.kernel = kernel[i], .stride = strides[i], .dilation = dilations[i]};
    if (auto_pad_of(attributes) != AutoPad::explicit_pads) continue;
    windows[i].pad_begin = pads[i];
    windows[i].pad_end = pads[i + count];
  }
  return windows;
}

// SAME_UPPER puts the odd element of padding at the end, SAME_LOWER at the beginning.
void share_padding(Window& window, std::int64_t total, bool odd_at_end) {
  const std::int64_t smaller = total / 2, larger = total - smaller;
  window.pad_begin = odd_at_end ? smaller : larger;
  window.pad_end = odd_at_end ? larger : smaller;
}

void set_output(Window& window, AutoPad auto_pad, bool ceil_mode) {
  if (auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower) {
    window.output = ceil_div(window.input, window.stride);
    const std::int64_t needed = (window.output - 1) * window.stride + window.reach();
    share_padding(window, std::max<std::int64_t>(needed - window.input, 0), auto_pad == AutoPad::same_upper);
    return;
  }
  const std::int64_t room = window.input + window.pad_begin + window.pad_end - window.reach();
  require(room >= 0,
          fmt::format("a kernel that reaches over {} does not fit the extent {} with padding {} and {}",
                      window.reach(), window.input, window.pad_begin, window.pad_end));
  window.output = (ceil_mode ? ceil_div(room, window.stride) : room / window.stride) + 1;
  // A window that would start in the padding at the end is left out.
  if (ceil_mode && (window.output - 1) * window.stride >= window.input + window.pad_begin) --window.output;
}

std::vector<Window> forward_windows(const graph::Attributes& attributes, const Extents& input,
                                    const Extents& kernel, bool ceil_mode) {
  require(kernel.size() == input.size(),
          fmt::format("the kernel has {} spatial axes, the input {}", kernel.size(), input.size()));
  std::vector<Window> windows = bare_windows(attributes, kernel);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    windows[i].input = input[i];
    set_output(windows[i], auto_pad_of(attributes), ceil_mode);
  }
  return windows;
}

// The large side of a transposed convolution, from output_shape, auto_pad or the explicit pads.
void set_input(Window& window, AutoPad auto_pad, std::int64_t output_padding, std::int64_t output_shape) {
  const std::int64_t full = (window.output - 1) * window.stride + output_padding + window.reach();
  if (output_shape < 0 && (auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower))
    output_shape = window.output * window.stride;
  if (output_shape >= 0) {
    window.input = output_shape;
    share_padding(window, std::max<std::int64_t>(full - output_shape, 0), auto_pad == AutoPad::same_upper);
  } else {
    window.input = full - window.pad_begin - window.pad_end;
  }
  require(window.input >= 0, fmt::format("padding {} and {} cuts more than the output's {}", window.pad_begin,
                                         window.pad_end, full));
}

}  // namespace

std::int64_t Window::first_output(std::int64_t k) const {
  return std::clamp<std::int64_t>(ceil_div(pad_begin - k * dilation, stride), 0, output);
}

std::int64_t Window::last_output(std::int64_t k) const {
  const std::int64_t past = floor_div(input - 1 + pad_begin - k * dilation, stride) + 1;
  return std::clamp<std::int64_t>(past, first_output(k), output);
}

std::vector<Window> convolution_windows(const graph::Attributes& attributes, const Extents& input,
                                        const Extents& kernel) {
  return forward_windows(attributes, input, kernel, false);
}

std::vector<Window> pooling_windows(const graph::Attributes& attributes, const Extents& input) {
  return forward_windows(attributes, input, attributes.integers("kernel_shape"),
                         attributes.integer("ceil_mode", 0) != 0);
}

std::vector<Window> transposed_windows(const graph::Attributes& attributes, const Extents& output,
                                       const Extents& kernel) {
  require(kernel.size() == output.size(),
          fmt::format("the kernel has {} spatial axes, the input {}", kernel.size(), output.size()));
  std::vector<Window> windows = bare_windows(attributes, kernel);
  const Extents output_padding = spatial_attribute(attributes, "output_padding", windows.size(), 0, 0);
  const bool has_shape = attributes.has("output_shape");
  const Extents output_shape =
      has_shape ? spatial_attribute(attributes, "output_shape", windows.size(), 0, 0) : Extents();
  for (std::size_t i = 0; i < windows.size(); ++i) {
    windows[i].output = output[i];
    set_input(windows[i], auto_pad_of(attributes), output_padding[i], has_shape ? output_shape[i] : -1);
  }
  return windows;
}

Extents spatial_extents(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

}  // namespace superstep::op
