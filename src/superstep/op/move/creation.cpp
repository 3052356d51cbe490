#include "superstep/op/move/creation.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/strided.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/cast.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

// Constant: the value in one of ONNX's attributes.
Tensor constant_value(const Attributes& attributes) {
  if (attributes.has("value")) return attributes.tensor("value");
  if (attributes.has("value_float"))
    return Tensor::scalar(static_cast<float>(attributes.number("value_float")));
  if (attributes.has("value_int")) return Tensor::scalar(attributes.integer("value_int"));
  if (attributes.has("value_ints")) {
    const Extents values = attributes.integers("value_ints");
    return Tensor::from({static_cast<std::int64_t>(values.size())}, values);
  }
  if (const graph::Attribute* found = attributes.find("value_floats"))
    if (const auto* values = std::get_if<std::vector<double>>(found))
      return Tensor::from({static_cast<std::int64_t>(values->size())}, *values).converted(ElementType::f32);
  refuse("none of the attributes value, value_float, value_floats, value_int, value_ints is given");
}

std::vector<ValueType> infer_constant(const InferContext& context) {
  const Tensor value = constant_value(context.attributes);
  return {{value.type(), value.shape()}};
}

void copy_to(const Tensor& from, Tensor& to) { std::memcpy(to.bytes(), from.bytes(), from.byte_count()); }

void evaluate_constant(const EvaluateContext& context) {
  copy_to(constant_value(context.attributes), context.output(0));
}

// ConstantOfShape: a tensor of one element, by default a float zero.
Tensor fill_value(const Attributes& attributes) {
  const Tensor value = attributes.has("value") ? attributes.tensor("value") : Tensor(ElementType::f32, {1});
  require(value.element_count() == 1, "attribute 'value' must have one element");
  return value;
}

std::vector<ValueType> infer_constant_of_shape(const InferContext& context) {
  return {{fill_value(context.attributes).type(), checked_shape(context.known_integers(0, "input shape"))}};
}

void evaluate_constant_of_shape(const EvaluateContext& context) {
  const Tensor value = fill_value(context.attributes);
  dispatch(value.type(), [&]<class T>() { std::ranges::fill(context.output(0).as<T>(), value.as<T>()[0]); });
}

// Shape: the extents from `start` to `end`, both clamped to [0, rank].
Extents extents_between(const Attributes& attributes, const Shape& shape) {
  const std::int64_t rank = shape.rank();
  const auto clamped = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t start = clamped(attributes.integer("start", 0));
  const std::int64_t end = std::max(start, clamped(attributes.integer("end", rank)));
  return {shape.begin() + start, shape.begin() + end};
}

std::vector<ValueType> infer_shape(const InferContext& context) {
  const auto count = extents_between(context.attributes, context.input(0).shape).size();
  return {{ElementType::i64, Shape{static_cast<std::int64_t>(count)}}};
}

void evaluate_shape(const EvaluateContext& context) {
  std::ranges::copy(extents_between(context.attributes, context.input(0).shape()),
                    context.output(0).as<std::int64_t>().begin());
}

std::vector<ValueType> infer_size(const InferContext&) { return {{ElementType::i64, Shape{}}}; }

void evaluate_size(const EvaluateContext& context) {
  context.output(0).as<std::int64_t>()[0] = context.input(0).element_count();
}

// Range: start, start + delta, ... before limit.
std::int64_t range_length(double start, double limit, double delta) {
  require(delta != 0, "input delta is 0");
  const double count = std::ceil((limit - start) / delta);
  require(count < 0x1p53, "the range has too many elements");
  return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

std::vector<ValueType> infer_range(const InferContext& context) {
  static constexpr const char* names[] = {"start", "limit", "delta"};
  double values[3];
  for (std::size_t i = 0; i < 3; ++i) {
    require_scalar(context, i, names[i]);
    require_numeric(context, i, names[i]);
    require_same_element(context, i, names[i], 0, "start");
    if (!context.constants[i])
      throw Error(ErrorCode::unsupported,
                  fmt::format("input {} must be known when the graph is compiled", names[i]));
    values[i] = context.constants[i]->at(0);
  }
  return {{context.input(0).element, Shape{range_length(values[0], values[1], values[2])}}};
}

void evaluate_range(const EvaluateContext& context) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const W start = widen<W>(context.input(0))[0], delta = widen<W>(context.input(2))[0];
    std::vector<W> values(static_cast<std::size_t>(context.output(0).element_count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<W>(i) * delta;
    narrow(values, context.output(0));
  });
}

// EyeLike: ones on the k-th diagonal of a matrix of the input's shape.
std::vector<ValueType> infer_eye_like(const InferContext& context) {
  require_rank(context, 0, "input", 2);
  return {{element_attribute(context.attributes, "dtype", context.input(0).element), context.input(0).shape}};
}

void evaluate_eye_like(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const std::int64_t k = context.attributes.integer("k", 0);
  for (std::int64_t row = std::max<std::int64_t>(0, -k); row < shape[0] && row + k < shape[1]; ++row)
    context.output(0).set(row * shape[1] + row + k, 1);
}

// Nothing of it depends on anything but the shape.
std::vector<Var> decompose_eye_like(const DerivativeContext& context) {
  Tensor eye(context.outputs[0].element(), context.outputs[0].shape());
  evaluate_eye_like({.attributes = context.attributes, .inputs = {&eye}, .outputs = {&eye}});
  return {context.builder.constant(std::move(eye))};
}

}  // namespace

Var constant_of_shape(Builder& builder, ElementType element, const Shape& shape, double value) {
  return builder.node1("ConstantOfShape", {builder.integers(shape.extents())},
                       {{"value", Tensor::full(element, {1}, value)}});
}
Var shape_of(Var x) { return x.builder().node1("Shape", {x}); }
Var element_count(Var x) { return x.builder().node1("Size", {x}); }
Var range(Var start, Var limit, Var delta) { return start.builder().node1("Range", {start, limit, delta}); }

namespace {

constexpr Definition constant_definition{
    .name = "Constant",
    .since_opset = 13,
    .min_inputs = 0,
    .max_inputs = 0,
    .traits = {.elements = Elements::any,
               .work = WorkKind::view,
               .attributes = "sparse_value value value_float value_floats value_int value_ints "
                             "value_string value_strings"},
    .infer = infer_constant,
    .flops = no_flops,
    .evaluate = evaluate_constant,
    .vjp = zero_vjp,
    .jvp = zero_jvp};

constexpr Definition filled_definition{.name = "ConstantOfShape",
                                       .since_opset = 9,
                                       .traits = {.elements = Elements::any,
                                                  .work = WorkKind::view,
                                                  .constants = Variation::nowhere,
                                                  .attributes = "value"},
                                       .infer = infer_constant_of_shape,
                                       .flops = no_flops,
                                       .evaluate = evaluate_constant_of_shape,
                                       .vjp = zero_vjp,
                                       .jvp = zero_jvp,
                                       .shape_inputs = 0b1u};

}  // namespace

std::span<const Definition> creation_operators() {
  static const Definition definitions[] = {
      constant_definition,
      filled_definition,
      {.name = "Shape",
       .since_opset = 15,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::view,
                  .batch = batch::shape_only,
                  .attributes = "end start",
                  .f32_since = 13},
       .infer = infer_shape,
       .flops = no_flops,
       .evaluate = evaluate_shape,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "Size",
       .since_opset = 13,
       .traits = {.elements = Elements::any, .work = WorkKind::view, .batch = batch::shape_only},
       .infer = infer_size,
       .flops = no_flops,
       .evaluate = evaluate_size,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "Range",
       .since_opset = 11,
       .min_inputs = 3,
       .max_inputs = 3,
       .traits = {.elements = Elements::numeric, .work = WorkKind::view, .attributes = "stash_type"},
       .infer = infer_range,
       .evaluate = evaluate_range,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .shape_inputs = 0b111u},
      {.name = "EyeLike",
       .since_opset = 9,
       .traits = {.elements = Elements::any, .work = WorkKind::elementwise, .attributes = "dtype k"},
       .infer = infer_eye_like,
       .flops = no_flops,
       .evaluate = evaluate_eye_like,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .decompose = decompose_eye_like},
  };
  return definitions;
}

}  // namespace superstep::op
