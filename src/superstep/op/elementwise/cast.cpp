#include "superstep/op/elementwise/cast.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/elementwise_traits.h"

namespace superstep::op {
namespace {

// TensorProto.DataType in the order of ElementType.
constexpr std::array<std::int64_t, 13> onnx_numbers = {11, 1, 10, 16, 7, 6, 5, 3, 13, 12, 4, 2, 9};

template <class To>
To to_integer(double value) {
  constexpr double low = static_cast<double>(std::numeric_limits<To>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<To>::max());
  if (value != value) return 0;
  if (value <= low) return std::numeric_limits<To>::min();
  if (value >= high) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <class To, class W>
To convert_one(W value) {
  if constexpr (std::is_same_v<W, double> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
    return to_integer<To>(value);
  else
    return narrow_one<To>(value);
}

ElementType target_of(const Attributes& attributes) {
  return element_attribute(attributes, "to", ElementType::f32);
}

std::vector<ValueType> infer_cast(const InferContext& context) {
  require(context.attributes.has("to"), "attribute 'to' is missing");
  return {{target_of(context.attributes), context.input(0).shape}};
}

std::vector<ValueType> infer_cast_like(const InferContext& context) {
  return {{context.input(1).element, context.input(0).shape}};
}

void evaluate_cast(const EvaluateContext& context) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const std::vector<W> values = widen<W>(context.input(0));
    dispatch(context.output(0).type(), [&]<class To>() {
      std::ranges::transform(values, context.output(0).as<To>().begin(), convert_one<To, W>);
    });
  });
}

bool both_floating(const DerivativeContext& context) {
  return is_floating(context.inputs[0].element()) && is_floating(context.outputs[0].element());
}

std::vector<Var> vjp_cast(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  if (both_floating(context)) result[0] = cast(cotangents[0], context.inputs[0].element());
  return result;
}

std::vector<Var> jvp_cast(const DerivativeContext& context, std::span<const Var> tangents) {
  if (!both_floating(context) || !tangents[0].valid()) return {Var()};
  return {cast(tangents[0], context.outputs[0].element())};
}

std::vector<ValueType> infer_bit_cast(const InferContext& context) {
  const ValueType& x = context.input(0);
  context.attributes.integer("to");
  const ElementType to = element_attribute(context.attributes, "to", x.element);
  if (size_in_bytes(to) != size_in_bytes(x.element))
    throw Error(ErrorCode::bad_graph,
                fmt::format("input is {}, expected a type of as many bits as {}", to_string(x), name_of(to)));
  return {{to, x.shape}};
}

// A byte that becomes a truth value must be one.
void evaluate_bit_cast(const EvaluateContext& context) {
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  std::copy_n(x.bytes(), x.byte_count(), y.bytes());
  if (y.type() == ElementType::boolean)
    for (std::size_t i = 0; i < y.byte_count(); ++i) y.bytes()[i] = std::byte{y.bytes()[i] != std::byte{0}};
}

}  // namespace

Var bit_cast(Var x, ElementType to) { return x.builder().node1("BitCast", {x}, {{"to", onnx_number(to)}}); }

Var cast(Var x, ElementType to) {
  return x.element() == to ? x : x.builder().node1("Cast", {x}, {{"to", onnx_number(to)}});
}

std::int64_t onnx_number(ElementType type) { return onnx_numbers[static_cast<std::size_t>(type)]; }

std::optional<ElementType> element_type_from_onnx(std::int64_t number) {
  for (ElementType type : all_element_types)
    if (onnx_number(type) == number) return type;
  return std::nullopt;
}

ElementType element_attribute(const Attributes& attributes, std::string_view name, ElementType otherwise) {
  if (!attributes.has(name)) return otherwise;
  if (const auto type = element_type_from_onnx(attributes.integer(name))) return *type;
  throw Error(ErrorCode::unsupported, fmt::format("attribute '{}' is ONNX element type {}, which is not "
                                                  "a numeric type supported here",
                                                  name, attributes.integer(name)));
}

std::span<const Definition> cast_operators() {
  static const Definition definitions[] = {
      {.name = "Cast",
       .since_opset = 13,
       .traits = elementwise_traits(Elements::any,
                                    {.batch = batch::additive, .attributes = "round_mode saturate to"}),
       .infer = infer_cast,
       .evaluate = evaluate_cast,
       .vjp = vjp_cast,
       .jvp = jvp_cast},
      {.name = "BitCast",
       .since_opset = 26,
       .traits = {.elements = Elements::any, .work = WorkKind::elementwise, .attributes = "to"},
       .infer = infer_bit_cast,
       .evaluate = evaluate_bit_cast,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "CastLike",
       .since_opset = 15,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::elementwise,
                  .attributes = "round_mode saturate"},
       .infer = infer_cast_like,
       .evaluate = evaluate_cast,
       .vjp = vjp_cast,
       .jvp = jvp_cast},
  };
  return definitions;
}

}  // namespace superstep::op
