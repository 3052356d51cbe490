// GridSample and AffineGrid, after the ONNX specification (operator sets 20 and 22) and Jaderberg et al.,
// "Spatial transformer networks", NIPS 2015.
#include <fmt/format.h>

#include <array>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/window/sampling.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// Operator set 16 called linear and cubic "bilinear" and "bicubic".
GridSampleAttributes read(const Attributes& attributes) {
  GridSampleAttributes result{attributes.text("mode", "linear"), attributes.text("padding_mode", "zeros"),
                              attributes.integer("align_corners", 0) != 0};
  if (result.mode == "bilinear") result.mode = "linear";
  if (result.mode == "bicubic") result.mode = "cubic";
  require(result.mode == "linear" || result.mode == "nearest" || result.mode == "cubic",
          fmt::format("attribute 'mode' is '{}', expected linear, nearest or cubic", result.mode));
  require(
      result.padding == "zeros" || result.padding == "border" || result.padding == "reflection",
      fmt::format("attribute 'padding_mode' is '{}', expected zeros, border or reflection", result.padding));
  return result;
}

std::vector<ValueType> infer_grid_sample(const InferContext& context) {
  require_numeric(context, 0, "X");
  require_floating(context, 1, "grid");
  read(context.attributes);
  const Shape &x = context.input(0).shape, &grid = context.input(1).shape;
  require(x.rank() >= 3 && x.rank() <= 5, fmt::format("input X is {}, expected rank 3 to 5", to_string(x)));
  require(grid.rank() == x.rank() && grid[0] == x[0] && grid[grid.rank() - 1] == x.rank() - 2,
          fmt::format("input grid is {}, expected [{}, points..., {}] of rank {}", to_string(grid), x[0],
                      x.rank() - 2, x.rank()));
  for (int axis = 2; axis < x.rank(); ++axis) require(x[axis] > 0, "input X has an empty axis");
  Extents extents{x[0], x[1]};
  extents.insert(extents.end(), grid.begin() + 1, grid.end() - 1);
  return {{context.input(0).element, Shape(extents)}};
}

// One axis: what lies outside it, in elements, and what happens there.
class Axis {
 public:
  Axis(std::int64_t extent, const GridSampleAttributes& attributes)
      : extent_(static_cast<double>(extent)), attributes_(attributes) {}

  // From [-1, 1] to elements, and back inside where the padding says so. A cubic between border values has
  // them at each of its taps instead, as PyTorch and ONNX Runtime compute it; the text leaves it open.
  Var position(Var coordinate) const {
    Var x = attributes_.align_corners ? (coordinate + 1.0) * ((extent_ - 1) / 2)
                                      : ((coordinate + 1.0) * extent_ - 1.0) * 0.5;
    if (attributes_.mode == "nearest") x = round(x);
    const bool stays =
        attributes_.padding == "zeros" || (attributes_.padding == "border" && attributes_.mode == "cubic");
    return stays ? x : where(inside(x, low(), high()), x, moved_inside(x));
  }

  std::vector<SampleTap> taps(Var x) const {
    if (attributes_.mode == "nearest") return {tap(x, expand_to(constant_like(x, 1), x.shape()))};
    const Var lower = floor(x), share = x - lower;
    if (attributes_.mode == "linear") return {tap(lower, 1.0 - share), tap(lower + 1.0, share)};
    std::vector<SampleTap> result;
    const std::array<Var, 4> weights = cubic_weights(share);
    for (std::size_t i = 0; i < 4; ++i)
      result.push_back(tap(lower + (static_cast<double>(i) - 1.0), weights[i]));
    return result;
  }

 private:
  double low() const { return attributes_.align_corners ? 0 : -0.5; }
  double high() const { return extent_ - (attributes_.align_corners ? 1 : 0.5); }

  static Var inside(Var x, double low, double high) {
    return logical_and(greater_or_equal(x, constant_like(x, low)), less_or_equal(x, constant_like(x, high)));
  }
  Var clamped(Var x) const { return clip(x, 0, extent_ - 1); }

  // Border: to the nearest element; reflection: back and forth between the borders.
  Var moved_inside(Var x) const {
    const double range = high() - low();
    if (attributes_.padding == "border" || range == 0) return clamped(x);
    const Var distance = abs(x - low());
    const Var folded = distance - floor(distance * (0.5 / range)) * (2 * range);
    return (range - abs(folded - range)) + low();
  }

  SampleTap tap(Var index, Var weight) const {
    if (attributes_.padding == "zeros")
      weight = where(inside(index, 0, extent_ - 1), weight, constant_like(weight, 0));
    else if (attributes_.padding == "reflection")
      index = where(inside(index, low(), high()), index, moved_inside(index));
    const Var first = constant_like(index, 0);  // of NaN, too
    index = where(greater_or_equal(index, first), clamped(index), first);
    return {cast(index, ElementType::i64), weight};
  }

  // Cubic convolution (Keys, IEEE Trans. Acoustics, Speech, and Signal Processing 29, 1981).
  static std::array<Var, 4> cubic_weights(Var t) {
    constexpr double a = -0.75;
    const auto near = [&](Var s) { return (s * (a + 2) - (a + 3)) * s * s + 1.0; };
    const auto far = [&](Var s) { return ((s * a - 5 * a) * s + 8 * a) * s - 4 * a; };
    return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
  }

  double extent_;
  const GridSampleAttributes& attributes_;
};

std::vector<Var> decompose_grid_sample(const DerivativeContext& context) {
  const GridSampleAttributes attributes = read(context.attributes);
  const Var given = context.inputs[0], grid = context.inputs[1];
  // Integers are interpolated as numbers.
  const Var x = is_floating(given.element()) ? given : cast(given, ElementType::f64);
  const Shape& shape = x.shape();
  const int spatial = shape.rank() - 2;
  const std::int64_t points =
      grid.shape().element_count() / std::max<std::int64_t>(1, shape[0] * static_cast<std::int64_t>(spatial));
  const Var flat = cast(reshape(grid, {shape[0], points, spatial}), x.element());
  std::vector<std::vector<SampleTap>> axes;
  for (int axis = 0; axis < spatial; ++axis) {
    const int from = spatial - 1 - axis;
    const Axis along(shape[axis + 2], attributes);
    const Var coordinate = reshape(slice(flat, {from}, {from + 1}, {2}), {shape[0], points});
    axes.push_back(along.taps(along.position(coordinate)));
  }
  Extents extents{shape[0], shape[1]};
  extents.insert(extents.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
  return {cast(reshape(sample(x, axes), Shape(extents)), given.element())};
}

Extents checked_size(const Extents& size, const Shape& theta) {
  const std::int64_t spatial = static_cast<std::int64_t>(size.size()) - 2;
  require(spatial == 2 || spatial == 3,
          fmt::format("input size has {} elements, expected 4 or 5", size.size()));
  require(theta == Shape({size[0], spatial, spatial + 1}),
          fmt::format("input theta is {}, expected [{}, {}, {}]", to_string(theta), size[0], spatial,
                      spatial + 1));
  for (std::int64_t extent : size) require(extent >= 1, fmt::format("input size holds {}", extent));
  Extents grid{size[0]};
  grid.insert(grid.end(), size.begin() + 2, size.end());
  grid.push_back(spatial);
  return grid;
}

std::vector<ValueType> infer_affine_grid(const InferContext& context) {
  require_floating(context, 0, "theta");
  const Extents grid = checked_size(context.known_integers(1, "input size"), context.input(0).shape);
  return {{context.input(0).element, checked_shape(grid)}};
}

// The centres of the elements from -1 to 1, the last axis first, and a 1: [points, r + 1].
Tensor homogeneous_points(const Extents& spatial, bool align_corners) {
  const std::int64_t rank = static_cast<std::int64_t>(spatial.size());
  const Shape shape{spatial};
  Tensor points(ElementType::f64, {shape.element_count(), rank + 1});
  const Extents strides = shape.row_major_strides();
  for (std::int64_t p = 0; p < shape.element_count(); ++p) {
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      const std::int64_t extent = spatial[static_cast<std::size_t>(axis)];
      const auto i = static_cast<double>(p / strides[static_cast<std::size_t>(axis)] % extent);
      const auto n = static_cast<double>(extent);
      const double edge_to_edge = (2 * i + 1) / n - 1,
                   centre_to_centre = extent > 1 ? 2 * i / (n - 1) - 1 : 0;
      points.set(p * (rank + 1) + rank - 1 - axis, align_corners ? centre_to_centre : edge_to_edge);
    }
    points.set(p * (rank + 1) + rank, 1);
  }
  return points;
}

std::vector<Var> decompose_affine_grid(const DerivativeContext& context) {
  const Var theta = context.inputs[0];
  const Extents size = constant_integers(context.inputs[1]), grid = checked_size(size, theta.shape());
  const Tensor points =
      homogeneous_points({size.begin() + 2, size.end()}, context.attributes.integer("align_corners", 0) != 0);
  const Var base = context.builder.constant(points.converted(theta.element()));
  return {reshape(matmul(base, transpose(theta, {0, 2, 1})), Shape(grid))};
}

}  // namespace

Var grid_sample(Var x, Var grid, const GridSampleAttributes& a) {
  return x.builder().node1(
      "GridSample", {x, grid},
      {{"mode", a.mode}, {"padding_mode", a.padding}, {"align_corners", std::int64_t{a.align_corners}}});
}

Var affine_grid(Var theta, const Shape& size, bool align_corners) {
  return theta.builder().node1("AffineGrid", {theta, theta.builder().integers(size.extents())},
                               {{"align_corners", std::int64_t{align_corners}}});
}

std::span<const Definition> sampling_operators() {
  static const Definition definitions[] = {
      composite<decompose_grid_sample>({"GridSample", 16, 2, 2}, infer_grid_sample,
                                       {.elements = Elements::floating,
                                        .work = WorkKind::elementwise,
                                        .attributes = "align_corners mode padding_mode"}),
      composite<decompose_affine_grid>(
          {"AffineGrid", 20, 2, 2, 1, 0b10u}, infer_affine_grid,
          {.elements = Elements::floating, .work = WorkKind::elementwise, .attributes = "align_corners"}),
  };
  return definitions;
}

}  // namespace superstep::op
