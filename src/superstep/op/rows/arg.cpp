// ArgMax and ArgMin.
#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/strided.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

int axis_of(const Attributes& attributes, const Shape& shape) {
  return checked_axis(attributes.integer("axis", 0), shape.rank(), "attribute 'axis'");
}

std::vector<ValueType> infer_arg(const InferContext& context) {
  require_numeric(context, 0, "data");
  const Shape& shape = context.input(0).shape;
  const int axis = axis_of(context.attributes, shape);
  require(shape[axis] > 0, "axis " + std::to_string(axis) + " is empty: it has no largest element");
  std::vector<std::int64_t> extents = shape.extents();
  extents[static_cast<std::size_t>(axis)] = 1;
  if (context.attributes.integer("keepdims", 1) == 0) extents.erase(extents.begin() + axis);
  return {{ElementType::i64, Shape(extents)}};
}

template <class Better>
void evaluate_arg(const EvaluateContext& context, Better better) {
  const Shape& shape = context.input(0).shape();
  const int axis = axis_of(context.attributes, shape);
  const bool last = context.attributes.integer("select_last_index", 0) != 0;
  std::vector<std::int64_t> strides = shape.row_major_strides(), outer = shape.extents();
  const std::int64_t step = strides[static_cast<std::size_t>(axis)];
  outer[static_cast<std::size_t>(axis)] = 1;
  auto y = context.output(0).as<std::int64_t>();
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const std::vector<W> x = widen<W>(context.input(0));
    for_each_strided(Shape(outer), strides, 0, [&](std::int64_t i, std::int64_t start) {
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < shape[axis]; ++k) {
        const W candidate = x[static_cast<std::size_t>(start + k * step)];
        const W champion = x[static_cast<std::size_t>(start + best * step)];
        // NaN is more extreme than any number, as in NumPy; of several, the first or the last.
        const bool both = candidate != candidate && champion != champion;
        const bool above = better(candidate, champion) || (candidate != candidate && champion == champion);
        if (above || (last && (candidate == champion || both))) best = k;
      }
      y[static_cast<std::size_t>(i)] = best;
    });
  });
}

void evaluate_argmax(const EvaluateContext& context) {
  evaluate_arg(context, [](auto a, auto b) { return a > b; });
}
void evaluate_argmin(const EvaluateContext& context) {
  evaluate_arg(context, [](auto a, auto b) { return a < b; });
}

double input_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return static_cast<double>(inputs[0].shape.element_count());
}

Var arg(std::string_view op, Var x, std::int64_t axis, bool keep) {
  return x.builder().node1(op, {x}, {{"axis", axis}, {"keepdims", std::int64_t{keep}}});
}

}  // namespace

Var argmax(Var x, std::int64_t axis, bool keep) { return arg("ArgMax", x, axis, keep); }
Var argmin(Var x, std::int64_t axis, bool keep) { return arg("ArgMin", x, axis, keep); }

std::span<const Definition> arg_operators() {
  static const Definition definitions[] = {
      {.name = "ArgMax",
       .since_opset = 13,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::reduction,
                  .batch = batch::arg_reduction,
                  .attributes = "axis keepdims select_last_index"},
       .infer = infer_arg,
       .flops = input_flops,
       .evaluate = evaluate_argmax,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "ArgMin",
       .since_opset = 13,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::reduction,
                  .batch = batch::arg_reduction,
                  .attributes = "axis keepdims select_last_index"},
       .infer = infer_arg,
       .flops = input_flops,
       .evaluate = evaluate_argmin,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
  };
  return definitions;
}

}  // namespace superstep::op
