#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/window/region.h"
#include "superstep/op/window/sampling.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

constexpr const char* samples_y = "superstep.samples_y";
constexpr const char* samples_x = "superstep.samples_x";

RoiAlignAttributes read(const Attributes& a) {
  const std::string coordinates = a.text("coordinate_transformation_mode", "half_pixel");
  require(coordinates == "half_pixel" || coordinates == "output_half_pixel",
          fmt::format("attribute 'coordinate_transformation_mode' is '{}', expected half_pixel or "
                      "output_half_pixel",
                      coordinates));
  RoiAlignAttributes result{a.integer("output_height", 1),  a.integer("output_width", 1),
                            a.integer("sampling_ratio", 0), a.number("spatial_scale", 1),
                            coordinates == "half_pixel",    a.text("mode", "avg")};
  require(result.mode == "avg" || result.mode == "max",
          fmt::format("attribute 'mode' is '{}', expected avg or max", result.mode));
  require(result.height >= 1 && result.width >= 1 && result.height < 1 << 20 && result.width < 1 << 20,
          "attributes 'output_height' and 'output_width' must be positive");
  require(result.sampling_ratio >= 0 && result.sampling_ratio < 1 << 12,
          fmt::format("attribute 'sampling_ratio' is {}", result.sampling_ratio));
  return result;
}

std::vector<ValueType> infer_roi_align(const InferContext& context) {
  require_floating(context, 0, "X");
  require_rank(context, 0, "X", 4);
  require_same_element(context, 1, "rois", 0, "X");
  require_integer(context, 2, "batch_indices");
  require_rank(context, 2, "batch_indices", 1);
  const Shape& x = context.input(0).shape;
  const std::int64_t regions = context.input(2).shape[0];
  require_shape(context, 1, "rois", {regions, 4});
  require(x[2] > 0 && x[3] > 0, "input X has an empty axis");
  const RoiAlignAttributes a = read(context.attributes);
  return {{context.input(0).element, Shape{regions, x[1], a.height, a.width}}};
}

// Corner and extent of each region along one axis, in elements of x: [R].
struct Side {
  Var start, length;
};
Side side_of(Var rois, std::int64_t column, const RoiAlignAttributes& a) {
  const auto corner = [&](std::int64_t i) {
    const Var value = reshape(slice(rois, {i}, {i + 1}, {1}), {rois.shape()[0]}) * a.spatial_scale;
    return a.half_pixel ? value - 0.5 : value;
  };
  const Var start = corner(column), length = corner(column + 2) - start;
  return {start, a.half_pixel ? length : max(length, constant_like(length, 1))};
}

// How many samples a bin of each region has along an axis, from the regions' values.
Extents sample_counts(const Tensor& rois, std::int64_t column, std::int64_t bins,
                      const RoiAlignAttributes& a) {
  Extents counts;
  for (std::int64_t r = 0; r < rois.shape()[0]; ++r) {
    double length = (rois.at(4 * r + column + 2) - rois.at(4 * r + column)) * a.spatial_scale;
    if (!a.half_pixel) length = std::max(length, 1.0);
    const double count = std::ceil(length / static_cast<double>(bins));
    if (!(count < 1 << 16))
      throw Error(ErrorCode::invalid_argument, fmt::format("region {} has {} samples per bin", r, count));
    counts.push_back(std::max<std::int64_t>(0, static_cast<std::int64_t>(count)));
  }
  return counts;
}

Extents counts_of(const DerivativeContext& context, const char* name, std::int64_t column, std::int64_t bins,
                  const RoiAlignAttributes& a) {
  if (a.sampling_ratio > 0)
    return Extents(static_cast<std::size_t>(context.inputs[1].shape()[0]), a.sampling_ratio);
  if (context.attributes.has(name)) return context.attributes.integers(name);
  if (const Tensor* rois = constant_data(context.inputs[1])) return sample_counts(*rois, column, bins, a);
  throw Error(ErrorCode::unsupported, "input rois must be constant where attribute 'sampling_ratio' is 0", {},
              "set sampling_ratio to the number of samples per bin");
}

// The sample points along one axis: [R, bins, most samples a bin], and which of them are there.
struct Points {
  Var position;
  Tensor present;  // f64 0 or 1, of the same shape
};
Points points_of(const Side& side, std::int64_t bins, const Extents& counts) {
  const std::int64_t regions = side.start.shape()[0];
  const std::int64_t most = counts.empty() ? 1 : std::max<std::int64_t>(1, std::ranges::max(counts));
  Tensor shares(ElementType::f64, {regions, bins, most}), present(ElementType::f64, {regions, bins, most});
  for (std::int64_t i = 0; i < shares.element_count(); ++i) {
    const std::int64_t s = i % most, bin = i / most % bins;
    const std::int64_t count = counts[static_cast<std::size_t>(i / (most * bins))];
    if (s >= count) continue;
    shares.set(i, (static_cast<double>(bin) + (static_cast<double>(s) + 0.5) / static_cast<double>(count)) /
                      static_cast<double>(bins));
    present.set(i, 1);
  }
  const auto column = [&](Var v) { return reshape(v, {regions, 1, 1}); };
  const Var share = side.start.builder().constant(shares.converted(side.start.element()));
  return {column(side.start) + share * column(side.length), present};
}

// Points up to one element outside read the border; those farther out count as zero.
std::vector<SampleTap> border_taps(Var position, std::int64_t extent) {
  const Var zero = constant_like(position, 0);
  const Var near = logical_and(greater_or_equal(position, constant_like(position, -1)),
                               less_or_equal(position, constant_like(position, static_cast<double>(extent))));
  std::vector<SampleTap> taps = linear_taps(clip(position, 0, static_cast<double>(extent - 1)), extent);
  for (SampleTap& tap : taps) tap.weight = where(near, tap.weight, zero);
  return taps;
}

// [R, bins of y, samples, bins of x, samples] as [R, points].
Var over_all(Var along, bool is_y, const Shape& all) {
  const Shape& s = along.shape();
  const Shape placed = is_y ? Shape{s[0], s[1], s[2], 1, 1} : Shape{s[0], 1, 1, s[1], s[2]};
  return reshape(expand(reshape(along, placed), all),
                 {all[0], all.element_count() / std::max<std::int64_t>(1, all[0])});
}

Var pooled(const std::vector<Var>& terms, Var present, const Shape& all, std::int64_t channels,
           bool average) {
  Extents extents = all.extents();
  extents.push_back(channels);
  const Axes samples{2, 4};
  const Shape column{present.shape()[0], present.shape()[1], 1};
  const Var values = sum(terms);  // interpolated, one a sample
  if (average) return reduce_sum(reshape(values * reshape(present, column), Shape(extents)), samples);
  const Var none = constant_like(present, -std::numeric_limits<double>::infinity());
  const Var here = greater(reshape(present, column), constant_like(present, 0));
  const Var largest = reduce_max(reshape(where(here, values, none), Shape(extents)), samples);
  return where(equal(largest, none), constant_like(largest, 0), largest);
}

std::vector<Var> decompose_roi_align(const DerivativeContext& context) {
  const RoiAlignAttributes a = read(context.attributes);
  const Var x = context.inputs[0], rois = context.inputs[1];
  const std::int64_t regions = rois.shape()[0], channels = x.shape()[1];
  const Points y = points_of(side_of(rois, 1, a), a.height, counts_of(context, samples_y, 1, a.height, a));
  const Points v = points_of(side_of(rois, 0, a), a.width, counts_of(context, samples_x, 0, a.width, a));
  const Shape all{regions, a.height, y.present.shape()[2], a.width, v.present.shape()[2]};
  const std::vector<std::vector<SampleTap>> axes = {
      border_taps(over_all(y.position, true, all), x.shape()[2]),
      border_taps(over_all(v.position, false, all), x.shape()[3])};
  const Var pictures =
      indices_within(context.inputs[2], {.count = x.shape()[0], .what = "input batch_indices"});
  const std::vector<Var> terms = sample_terms(x, axes, cast(pictures, ElementType::i64));
  // In an average every sample weighs one over the number in its bin.
  const auto shares = [&](const Points& points) {
    const Var present = context.builder.constant(points.present.converted(x.element()));
    if (a.mode == "max") return present;
    return present / max(reduce_sum(present, {2}, true), constant_like(present, 1));
  };
  const Var present = over_all(shares(y), true, all) * over_all(shares(v), false, all);
  return {transpose(pooled(terms, present, all, channels, a.mode == "avg"), {0, 3, 1, 2})};
}

// The rules differentiate with inputs of their own, which hides constants: the numbers of samples that follow
// from constant regions are handed on as attributes.
Attributes with_counts(const DerivativeContext& context) {
  Attributes attributes = context.attributes;
  const RoiAlignAttributes a = read(attributes);
  attributes.set(samples_y, counts_of(context, samples_y, 1, a.height, a));
  attributes.set(samples_x, counts_of(context, samples_x, 0, a.width, a));
  return attributes;
}

std::vector<Var> vjp_roi_align(const DerivativeContext& context, std::span<const Var> cotangents,
                               const std::vector<bool>& wanted) {
  const Attributes attributes = with_counts(context);
  return vjp_through(decompose_roi_align, {context.builder, attributes, context.inputs, context.outputs},
                     cotangents, wanted);
}

std::vector<Var> jvp_roi_align(const DerivativeContext& context, std::span<const Var> tangents) {
  const Attributes attributes = with_counts(context);
  return jvp_through(decompose_roi_align, {context.builder, attributes, context.inputs, context.outputs},
                     tangents);
}

Extents pooled_extents(const Attributes& attributes) {
  const Extents extents = attributes.integers("pooled_shape");
  require(extents.size() == 2 && extents[0] >= 1 && extents[1] >= 1 && extents[0] < 1 << 20 &&
              extents[1] < 1 << 20,
          "attribute 'pooled_shape' must hold two positive numbers");
  return extents;
}

std::vector<ValueType> infer_max_roi_pool(const InferContext& context) {
  require_floating(context, 0, "X");
  require_rank(context, 0, "X", 4);
  require_same_element(context, 1, "rois", 0, "X");
  require_rank(context, 1, "rois", 2);
  const Shape& rois = context.input(1).shape;
  require_shape(context, 1, "rois", {rois[0], 5});
  const Extents pooled_shape = pooled_extents(context.attributes);
  return {{context.input(0).element,
           Shape{rois[0], context.input(0).shape[1], pooled_shape[0], pooled_shape[1]}}};
}

// true where an element of the axis lies in the bin: [R, bins, extent]. Ends are rounded half away from zero
// (coordinates are not negative in practice), bins widened to whole elements.
Var members(Var rois, std::int64_t column, double scale, std::int64_t bins, std::int64_t extent) {
  const std::int64_t regions = rois.shape()[0];
  const auto corner = [&](std::int64_t i) {
    return floor(reshape(slice(rois, {i}, {i + 1}, {1}), {regions, 1}) * scale + 0.5);
  };
  const auto counted = [&](std::int64_t count, double first) {
    Tensor numbers(ElementType::f64, {count});
    for (std::int64_t i = 0; i < count; ++i) numbers.set(i, static_cast<double>(i) + first);
    return rois.builder().constant(numbers.converted(rois.element()));
  };
  const Var start = corner(column), length = corner(column + 2) - start + 1.0;
  const Var bin = max(length, constant_like(length, 1)) / static_cast<double>(bins);
  const Var first = floor(counted(bins, 0) * bin) + start, last = ceil(counted(bins, 1) * bin) + start;
  const Var element = counted(extent, 0);
  const auto deep = [&](Var v) { return reshape(v, {regions, bins, 1}); };
  return logical_and(greater_or_equal(element, deep(first)), less(element, deep(last)));
}

// One axis after the other: rows of a bin by columns of a bin.
std::vector<Var> decompose_max_roi_pool(const DerivativeContext& context) {
  // Ends of bins in f64: in a narrow type a bin could take another element.
  const Var x = context.inputs[0], rois = cast(context.inputs[1], ElementType::f64);
  const Extents pooled_shape = pooled_extents(context.attributes);
  const double scale = context.attributes.number("spatial_scale", 1);
  const Shape& s = x.shape();
  const std::int64_t regions = rois.shape()[0];
  const Var none = constant_like(x, -std::numeric_limits<double>::infinity());
  const Var numbers = cast(round(reshape(slice(rois, {0}, {1}, {1}), {regions})), ElementType::i64);
  const Var pictures = indices_within(numbers, {.count = s[0], .what = "column 0 of input rois"});
  const Var own = reshape(gather(x, pictures), {regions, s[1], s[2], 1, s[3]});
  const Var in_column =
      reshape(members(rois, 1, scale, pooled_shape[1], s[3]), {regions, 1, 1, pooled_shape[1], s[3]});
  const Var columns = reduce_max(where(in_column, own, none), {4});  // [R, C, H, columns]
  const Var in_row =
      reshape(members(rois, 2, scale, pooled_shape[0], s[2]), {regions, 1, pooled_shape[0], s[2], 1});
  const Var candidates = reshape(columns, {regions, s[1], 1, s[2], pooled_shape[1]});
  const Var largest = reduce_max(where(in_row, candidates, none), {3});
  return {where(equal(largest, none), constant_like(x, 0), largest)};  // an empty bin is 0
}

}  // namespace

Var roi_align(Var x, Var rois, Var pictures, const RoiAlignAttributes& a) {
  return x.builder().node1(
      "RoiAlign", {x, rois, pictures},
      {{"output_height", a.height},
       {"output_width", a.width},
       {"sampling_ratio", a.sampling_ratio},
       {"spatial_scale", a.spatial_scale},
       {"mode", a.mode},
       {"coordinate_transformation_mode", std::string(a.half_pixel ? "half_pixel" : "output_half_pixel")}});
}

Var max_roi_pool(Var x, Var rois, const Extents& pooled_shape, double spatial_scale) {
  return x.builder().node1("MaxRoiPool", {x, rois},
                           {{"pooled_shape", pooled_shape}, {"spatial_scale", spatial_scale}});
}

std::span<const Definition> region_pooling_operators() {
  static const Definition definitions[] = {
      {.name = "RoiAlign",
       .since_opset = 16,
       .min_inputs = 3,
       .max_inputs = 3,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::elementwise,
                  .attributes = "coordinate_transformation_mode mode output_height output_width "
                                "sampling_ratio spatial_scale"},
       .infer = infer_roi_align,
       .flops = flops_through<decompose_roi_align>,
       .evaluate = evaluate_through<decompose_roi_align>,
       .vjp = vjp_roi_align,
       .jvp = jvp_roi_align,
       .decompose = decompose_roi_align},
      composite<decompose_max_roi_pool>({"MaxRoiPool", 1, 2, 2}, infer_max_roi_pool,
                                        {.elements = Elements::floating,
                                         .work = WorkKind::elementwise,
                                         .attributes = "pooled_shape spatial_scale"}),
  };
  return definitions;
}

}  // namespace superstep::op
