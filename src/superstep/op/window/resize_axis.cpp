#include "superstep/op/window/resize_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/op/core/checks.h"

namespace superstep::op {
namespace {

using graph::Attributes;

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.at(i));
  return result;
}

bool given(const Tensor* tensor) { return tensor && tensor->element_count() > 0; }

std::string coordinates_of(const Attributes& attributes) {
  return attributes.text("coordinate_transformation_mode", "half_pixel");
}

void set_scale(ResizeAxis& axis, double scale) {
  require(scale > 0 && std::isfinite(scale), fmt::format("a scale is {}, expected a positive number", scale));
  axis.scale = scale;
  const double extent = std::floor(static_cast<double>(axis.input) * (axis.roi_end - axis.roi_begin) * scale);
  require(extent >= 0 && extent < 0x1p40, fmt::format("a scale of {} makes {} elements", scale, extent));
  axis.output = static_cast<std::int64_t>(extent);
}

void set_size(ResizeAxis& axis, double size) {
  require(size >= 0 && size < 0x1p40, fmt::format("a size is {}", size));
  axis.output = static_cast<std::int64_t>(size);
  axis.scale = axis.input ? size / static_cast<double>(axis.input) : 1;
}

// One scale for all axes: the smallest ("not_larger") or the largest ("not_smaller"); sizes round half up.
void keep_aspect_ratio(std::vector<ResizeAxis>& axes, const std::vector<int>& chosen,
                       const std::string& policy) {
  double scale = axes[static_cast<std::size_t>(chosen[0])].scale;
  for (int i : chosen) {
    const double next = axes[static_cast<std::size_t>(i)].scale;
    scale = policy == "not_larger" ? std::min(scale, next) : std::max(scale, next);
  }
  for (int i : chosen) {
    ResizeAxis& axis = axes[static_cast<std::size_t>(i)];
    axis.scale = scale;
    axis.output = static_cast<std::int64_t>(std::floor(scale * static_cast<double>(axis.input) + 0.5));
  }
}

// Where output `o` lies in the input.
double source_coordinate(const std::string& mode, const ResizeAxis& axis, std::int64_t o) {
  const auto x = static_cast<double>(o), input = static_cast<double>(axis.input);
  const double output = axis.scale * input;
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (mode == "half_pixel") return half_pixel;
  if (mode == "tf_half_pixel_for_nn") return half_pixel + 0.5;  // operator set 11 alone
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "align_corners") return output == 1 ? 0 : x * (input - 1) / (output - 1);
  if (mode == "pytorch_half_pixel") return axis.output == 1 ? 0 : half_pixel;
  if (mode == "half_pixel_symmetric")
    return input / 2 * (1 - static_cast<double>(axis.output) / output) + half_pixel;
  if (mode == "tf_crop_and_resize") {
    const double part = axis.roi_end - axis.roi_begin, begin = axis.roi_begin * (input - 1);
    const auto count = static_cast<double>(axis.output);
    return begin + (count == 1 ? part * (input - 1) / 2 : x * part * (input - 1) / (count - 1));
  }
  refuse(fmt::format("attribute 'coordinate_transformation_mode' is '{}', which is not known", mode));
}

double cubic_kernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

bool takes_upper(const std::string& mode, double ratio) {
  if (mode == "round_prefer_floor") return ratio > 0.5;
  if (mode == "round_prefer_ceil") return ratio >= 0.5;
  if (mode == "floor") return ratio >= 1;
  if (mode == "ceil") return true;
  refuse(fmt::format("attribute 'nearest_mode' is '{}', which is not known", mode));
}

// Weights of the positions base + first, base + first + 1, ..., for a point at base + ratio, ratio in (0, 1].
struct Filter {
  std::int64_t first;
  std::vector<double> weights;
};

Filter filter_of(const Attributes& attributes, double scale, double ratio) {
  const std::string mode = attributes.text("mode", "nearest");
  if (mode == "nearest") {
    const bool upper = takes_upper(attributes.text("nearest_mode", "round_prefer_floor"), ratio);
    return {upper ? 1 : 0, {1.0}};
  }
  require(mode == "linear" || mode == "cubic",
          fmt::format("attribute 'mode' is '{}', expected nearest, linear or cubic", mode));
  // Shrinking with antialias stretches the kernel.
  const double stretch = attributes.integer("antialias", 0) ? std::min(scale, 1.0) : 1.0;
  const double reach = mode == "linear" ? 1 : 2, a = attributes.number("cubic_coeff_a", -0.75);
  Filter filter{static_cast<std::int64_t>(std::floor(-reach / stretch)) + 1, {}};
  double total = 0;
  for (std::int64_t i = filter.first; i < 2 - filter.first; ++i) {
    const double distance = (static_cast<double>(i) - ratio) * stretch;
    const double weight =
        mode == "linear" ? std::max(0.0, 1 - std::abs(distance)) : cubic_kernel(distance, a);
    filter.weights.push_back(weight);
    total += weight;
  }
  for (double& weight : filter.weights) weight /= total;
  return filter;
}

void leave_out_outside(ResizeRow& row, std::int64_t extent) {
  std::erase_if(row.taps, [&](const ResizeTap& tap) { return tap.position < 0 || tap.position >= extent; });
  double total = 0;
  for (const ResizeTap& tap : row.taps) total += tap.weight;
  for (ResizeTap& tap : row.taps) tap.weight /= total;
}

ResizeRow row_at(const Attributes& attributes, const ResizeAxis& axis, double x) {
  const bool whole = std::floor(x) == x;
  const double base = whole ? x - 1 : std::floor(x), ratio = whole ? 1 : x - base;
  const Filter filter = filter_of(attributes, axis.scale, ratio);
  ResizeRow row;
  auto position = static_cast<std::int64_t>(base) + filter.first;
  for (double weight : filter.weights) row.taps.push_back({position++, weight});
  if (attributes.integer("exclude_outside", 0)) leave_out_outside(row, axis.input);
  for (ResizeTap& tap : row.taps) tap.position = std::clamp<std::int64_t>(tap.position, 0, axis.input - 1);
  return row;
}

}  // namespace

std::vector<ResizeAxis> resize_axes(const Attributes& attributes, const Shape& x, const Tensor* roi,
                                    const Tensor* scales, const Tensor* sizes) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> chosen;
  for (std::int64_t axis : attributes.integers("axes", all)) chosen.push_back(checked_axis(axis, x.rank()));
  require(given(scales) != given(sizes), "one of the inputs scales and sizes must be given, and not both");
  const std::vector<double> values = numbers(given(scales) ? *scales : *sizes);
  require(values.size() == chosen.size(),
          fmt::format("input {} has {} elements, expected {}", given(scales) ? "scales" : "sizes",
                      values.size(), chosen.size()));
  const bool crops = coordinates_of(attributes) == "tf_crop_and_resize";
  require(!crops || (given(roi) && roi->element_count() == 2 * static_cast<std::int64_t>(chosen.size())),
          "input roi must have two elements per axis for tf_crop_and_resize");
  std::vector<ResizeAxis> axes;
  for (std::int64_t extent : x) axes.push_back({.input = extent, .output = extent});
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    ResizeAxis& axis = axes[static_cast<std::size_t>(chosen[i])];
    if (crops) {
      axis.roi_begin = roi->at(static_cast<std::int64_t>(i));
      axis.roi_end = roi->at(static_cast<std::int64_t>(i + chosen.size()));
    }
    given(scales) ? set_scale(axis, values[i]) : set_size(axis, values[i]);
    require(axis.input > 0 || axis.output == 0, "an empty axis cannot be made larger");
  }
  const std::string policy = attributes.text("keep_aspect_ratio_policy", "stretch");
  if (given(sizes) && policy != "stretch" && !chosen.empty()) keep_aspect_ratio(axes, chosen, policy);
  return axes;
}

std::vector<ResizeRow> resize_rows(const Attributes& attributes, const ResizeAxis& axis) {
  const std::string mode = coordinates_of(attributes);
  std::vector<ResizeRow> rows;
  for (std::int64_t o = 0; o < axis.output; ++o) {
    const double x = source_coordinate(mode, axis, o);
    if (mode == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.input - 1)))
      rows.push_back({.taps = {}, .outside = true});
    else
      rows.push_back(row_at(attributes, axis, x));
  }
  return rows;
}

bool is_identity(const ResizeAxis& axis, const std::vector<ResizeRow>& rows) {
  if (axis.input != axis.output) return false;
  for (std::int64_t o = 0; o < axis.output; ++o) {
    const ResizeRow& row = rows[static_cast<std::size_t>(o)];
    if (row.outside) return false;
    for (const ResizeTap& tap : row.taps)
      if (tap.weight != (tap.position == o ? 1.0 : 0.0)) return false;
  }
  return true;
}

}  // namespace superstep::op
