// Element by element: arithmetic, functions, comparisons, choice, types.
#include <array>
#include <cmath>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/onnx/exported/aten.h"

namespace superstep::onnx {
namespace {

using Names = Translation::Names;

std::int64_t type_of_result(const Translation& t, const ExportedCall& c) {
  return t.program().type(c.outputs().at(0)).onnx;
}

// A tensor, a number or a size as a value of this type.
std::string operand(Translation& t, const ExportedCall& c, const char* argument, std::int64_t type) {
  if (c.is_tensor(argument)) {
    const std::string name = c.tensor(argument);
    return t.program().type(name).onnx == type ? t.value(name) : t.cast(t.value(name), type);
  }
  if (c.is_number(argument)) return t.number(type, c.real(argument));
  return t.cast(t.size(c.size(argument)), type);
}

// What has the same name and meaning in ONNX, of one input and of two: by ATen's name.
struct Plain {
  std::string_view aten;
  const char* onnx;
};
constexpr Plain of_one[] = {{"relu", "Relu"},
                            {"tanh", "Tanh"},
                            {"sigmoid", "Sigmoid"},
                            {"exp", "Exp"},
                            {"log", "Log"},
                            {"sqrt", "Sqrt"},
                            {"neg", "Neg"},
                            {"abs", "Abs"},
                            {"sin", "Sin"},
                            {"cos", "Cos"},
                            {"erf", "Erf"},
                            {"floor", "Floor"},
                            {"ceil", "Ceil"},
                            {"round", "Round"},
                            {"sign", "Sign"},
                            {"sinh", "Sinh"},
                            {"cosh", "Cosh"},
                            {"atan", "Atan"},
                            {"mish", "Mish"},
                            {"selu", "Selu"},
                            {"reciprocal", "Reciprocal"},
                            {"hardswish", "HardSwish"},
                            {"softsign", "Softsign"},
                            {"logical_not", "Not"}};
constexpr Plain of_two[] = {{"mul", "Mul"}, {"maximum", "Max"}, {"minimum", "Min"}, {"pow", "Pow"}};
constexpr Plain comparisons[] = {
    {"eq", "Equal"}, {"lt", "Less"}, {"le", "LessOrEqual"}, {"gt", "Greater"}, {"ge", "GreaterOrEqual"}};

template <std::size_t N>
const char* onnx_of(const Plain (&table)[N], const ExportedCall& c) {
  for (const Plain& each : table)
    if (each.aten == c.base()) return each.onnx;
  throw Error(ErrorCode::internal, "an operator of ATen is in no table", c.op());
}

void one(Translation& t, const ExportedCall& c) {
  t.node(onnx_of(of_one, c), {operand(t, c, "self", type_of_result(t, c))}, c.outputs());
}

// pow.Scalar and pow.Tensor_Scalar name their arguments otherwise.
void two(Translation& t, const ExportedCall& c) {
  const char* second = c.has("exponent") ? "exponent" : "other";
  const std::int64_t type = type_of_result(t, c);
  t.node(onnx_of(of_two, c), {operand(t, c, "self", type), operand(t, c, second, type)}, c.outputs());
}

void compare(Translation& t, const ExportedCall& c) {
  const std::int64_t type = t.program().type(c.tensor("self")).onnx;
  const bool with_fractions =
      c.is_number("other") && type == onnx_i64 && c.real("other") != std::floor(c.real("other"));
  if (with_fractions) throw Error(ErrorCode::unsupported, "it compares whole numbers with a fraction");
  t.node(onnx_of(comparisons, c), {operand(t, c, "self", type), operand(t, c, "other", type)}, c.outputs());
}

void not_equal(Translation& t, const ExportedCall& c) {
  const std::int64_t type = t.program().type(c.tensor("self")).onnx;
  t.node("Not", {t.node1("Equal", {operand(t, c, "self", type), operand(t, c, "other", type)})}, c.outputs());
}

// self +- alpha other; rsub: other - alpha self.
void sum(Translation& t, const ExportedCall& c) {
  const std::int64_t type = type_of_result(t, c);
  const bool reversed = c.base() == "rsub";
  std::string a = operand(t, c, reversed ? "other" : "self", type),
              b = operand(t, c, reversed ? "self" : "other", type);
  if (c.has("alpha") && c.real("alpha") != 1) b = t.node1("Mul", {b, t.number(type, c.real("alpha"))});
  t.node(c.base() == "add" ? "Add" : "Sub", {a, b}, c.outputs());
}

void divide(Translation& t, const ExportedCall& c) {
  const std::int64_t type = type_of_result(t, c);
  const std::string rounding = c.text("rounding_mode", "");
  const Names inputs = {operand(t, c, "self", type), operand(t, c, "other", type)};
  if (rounding.empty()) return t.node("Div", inputs, c.outputs());
  if (rounding != "floor" || type == onnx_i64)
    throw Error(ErrorCode::unsupported, "it divides with rounding_mode '" + rounding + "'");
  t.node("Floor", {t.node1("Div", inputs)}, c.outputs());
}

void reciprocal_root(Translation& t, const ExportedCall& c) {
  t.node("Reciprocal", {t.node1("Sqrt", {operand(t, c, "self", type_of_result(t, c))})}, c.outputs());
}

void square(Translation& t, const ExportedCall& c) {
  const std::string x = operand(t, c, "self", type_of_result(t, c));
  t.node("Mul", {x, x}, c.outputs());
}

void log_of_one_more(Translation& t, const ExportedCall& c) {
  const std::int64_t type = type_of_result(t, c);
  t.node("Log", {t.node1("Add", {operand(t, c, "self", type), t.number(type, 1)})}, c.outputs());
}

void silu(Translation& t, const ExportedCall& c) {
  const std::string x = t.value(c.tensor("self"));
  t.node("Mul", {x, t.node1("Sigmoid", {x})}, c.outputs());
}

void gelu(Translation& t, const ExportedCall& c) {
  t.node("Gelu", {t.value(c.tensor("self"))}, c.outputs(), {{"approximate", c.text("approximate", "none")}});
}

void leaky_relu(Translation& t, const ExportedCall& c) {
  t.node("LeakyRelu", {t.value(c.tensor("self"))}, c.outputs(), {{"alpha", c.real("negative_slope", 0.01)}});
}

void elu(Translation& t, const ExportedCall& c) {
  if (c.real("scale", 1) != 1 || c.real("input_scale", 1) != 1)
    throw Error(ErrorCode::unsupported, "its scales are not 1");
  t.node("Elu", {t.value(c.tensor("self"))}, c.outputs(), {{"alpha", c.real("alpha", 1)}});
}

void softplus(Translation& t, const ExportedCall& c) {
  if (c.real("beta", 1) != 1) throw Error(ErrorCode::unsupported, "its beta is not 1");
  t.node("Softplus", {t.value(c.tensor("self"))}, c.outputs());
}

void hard_sigmoid(Translation& t, const ExportedCall& c) {
  t.node("HardSigmoid", {t.value(c.tensor("self"))}, c.outputs(), {{"alpha", 1.0 / 6}, {"beta", 0.5}});
}

void clip(Translation& t, const ExportedCall& c) {
  const std::int64_t type = type_of_result(t, c);
  if (c.base() == "relu6")
    return t.node("Clip", {t.value(c.tensor("self")), t.number(type, 0), t.number(type, 6)}, c.outputs());
  const bool hard = c.base() == "hardtanh";
  const char *low = hard ? "min_val" : "min", *high = hard ? "max_val" : "max";
  const auto limit = [&](const char* argument, double otherwise) {
    if (hard && !c.has(argument)) return t.number(type, otherwise);
    return c.has(argument) ? operand(t, c, argument, type) : std::string();
  };
  if (c.is_tensor(low) || c.is_tensor(high)) throw Error(ErrorCode::unsupported, "its limits are tensors");
  t.node("Clip", {operand(t, c, "self", type), limit(low, -1), limit(high, 1)}, c.outputs());
}

void prelu(Translation& t, const ExportedCall& c) {
  const auto rank = static_cast<std::int64_t>(t.program().extents(c.tensor("self")).size());
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 1; axis + 1 < rank; ++axis) axes.push_back(axis);
  std::string slope = t.value(c.tensor("weight"));
  if (!axes.empty()) slope = t.node1("Unsqueeze", {slope, t.integers(axes)});
  t.node("PRelu", {t.value(c.tensor("self")), slope}, c.outputs());
}

void choose(Translation& t, const ExportedCall& c) {
  const std::int64_t type = type_of_result(t, c);
  t.node("Where", {t.value(c.tensor("condition")), operand(t, c, "self", type), operand(t, c, "other", type)},
         c.outputs());
}

void masked_fill(Translation& t, const ExportedCall& c) {
  const std::int64_t type = type_of_result(t, c);
  t.node("Where", {t.value(c.tensor("mask")), operand(t, c, "value", type), operand(t, c, "self", type)},
         c.outputs());
}

void logical(Translation& t, const ExportedCall& c) {
  const bool both = c.base() == "logical_and" || c.base() == "bitwise_and" || c.base() == "__and__";
  if (type_of_result(t, c) != onnx_bool || t.program().type(c.tensor("self")).onnx != onnx_bool)
    throw Error(ErrorCode::unsupported, "it is of numbers, not of true and false");
  t.node(both ? "And" : "Or", {operand(t, c, "self", onnx_bool), operand(t, c, "other", onnx_bool)},
         c.outputs());
}

void convert(Translation& t, const ExportedCall& c) {
  const char* argument = c.has("self") ? "self" : "input";
  t.node("Cast", {t.value(c.tensor(argument))}, c.outputs(), {{"to", type_of_result(t, c)}});
}

void same(Translation& t, const ExportedCall& c) {
  t.node("Identity", {t.value(c.tensor(c.has("self") ? "self" : "input"))}, c.outputs());
}

void nothing(Translation&, const ExportedCall&) {}

constexpr auto table = std::to_array<AtenOperator>({
    {"relu", one},
    {"tanh", one},
    {"sigmoid", one},
    {"exp", one},
    {"log", one},
    {"sqrt", one},
    {"neg", one},
    {"abs", one},
    {"sin", one},
    {"cos", one},
    {"erf", one},
    {"floor", one},
    {"ceil", one},
    {"round", one},
    {"sign", one},
    {"sinh", one},
    {"cosh", one},
    {"atan", one},
    {"mish", one},
    {"selu", one},
    {"reciprocal", one},
    {"hardswish", one},
    {"softsign", one},
    {"logical_not", one},
    {"mul", two},
    {"maximum", two},
    {"minimum", two},
    {"pow", two},
    {"eq", compare},
    {"lt", compare},
    {"le", compare},
    {"gt", compare},
    {"ge", compare},
    {"ne", not_equal},
    {"add", sum},
    {"sub", sum},
    {"rsub", sum},
    {"div", divide},
    {"rsqrt", reciprocal_root},
    {"square", square},
    {"log1p", log_of_one_more},
    {"silu", silu},
    {"gelu", gelu},
    {"leaky_relu", leaky_relu},
    {"elu", elu},
    {"softplus", softplus},
    {"hardsigmoid", hard_sigmoid},
    {"relu6", clip},
    {"hardtanh", clip},
    {"clamp", clip},
    {"prelu", prelu},
    {"where", choose},
    {"masked_fill", masked_fill},
    {"logical_and", logical},
    {"logical_or", logical},
    {"bitwise_and", logical},
    {"bitwise_or", logical},
    {"__and__", logical},
    {"__or__", logical},
    {"to", convert, true},
    {"_to_copy", convert},
    {"type_as", convert},
    {"clone", same},
    {"lift_fresh_copy", same},
    {"detach", same, true},
    {"alias", same, true},
    {"contiguous", same, true},
    {"_assert_tensor_metadata", nothing},
    {"_assert_scalar", nothing},
    {"sym_constrain_range_for_size", nothing},
});

}  // namespace

std::span<const AtenOperator> aten_elementwise() { return table; }

}  // namespace superstep::onnx
