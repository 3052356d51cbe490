// Element-wise operators on integers and f64, which vector programs do not compute in; choices between
// elements of any type, and conversions that no group takes.
#include <algorithm>
#include <cmath>

#include "superstep/target/cpu/kernels/elementwise/wide_ops.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

using kernels::WideOp;
using kernels::WideOperation;

struct WideRow {
  std::string_view op;
  WideOp operation;
  double (*function)(double) = nullptr;
};

// Functions of f64.
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double reciprocal_of(double x) { return 1 / x; }
double relu_of(double x) { return x < 0 ? 0 : x; }

constexpr WideRow rows[] = {
    {"Neg", WideOp::negate},
    {"Abs", WideOp::absolute},
    {"Sign", WideOp::sign},
    {"BitwiseNot", WideOp::complement},
    {"Exp", WideOp::function, std::exp},
    {"Log", WideOp::function, std::log},
    {"Sqrt", WideOp::function, std::sqrt},
    {"Reciprocal", WideOp::function, reciprocal_of},
    {"Erf", WideOp::function, std::erf},
    {"Floor", WideOp::function, std::floor},
    {"Ceil", WideOp::function, std::ceil},
    {"Round", WideOp::function, std::nearbyint},
    {"Sin", WideOp::function, std::sin},
    {"Cos", WideOp::function, std::cos},
    {"Tan", WideOp::function, std::tan},
    {"Asin", WideOp::function, std::asin},
    {"Acos", WideOp::function, std::acos},
    {"Atan", WideOp::function, std::atan},
    {"Sinh", WideOp::function, std::sinh},
    {"Cosh", WideOp::function, std::cosh},
    {"Tanh", WideOp::function, std::tanh},
    {"Asinh", WideOp::function, std::asinh},
    {"Acosh", WideOp::function, std::acosh},
    {"Atanh", WideOp::function, std::atanh},
    {"Sigmoid", WideOp::function, sigmoid_of},
    {"Softplus", WideOp::function, softplus_of},
    {"Relu", WideOp::function, relu_of},
    {"Cast", WideOp::convert},
    {"CastLike", WideOp::convert},
    {"Add", WideOp::add},
    {"Sum", WideOp::add},
    {"Sub", WideOp::subtract},
    {"Mul", WideOp::multiply},
    {"Div", WideOp::divide},
    {"Mod", WideOp::modulus},
    {"Pow", WideOp::power},
    {"Min", WideOp::least},
    {"Max", WideOp::largest},
    {"BitwiseAnd", WideOp::bits_and},
    {"BitwiseOr", WideOp::bits_or},
    {"BitwiseXor", WideOp::bits_xor},
    {"BitShift", WideOp::shift_left},
    {"Equal", WideOp::equal},
    {"Less", WideOp::less},
    {"LessOrEqual", WideOp::less_or_equal},
    {"Greater", WideOp::less},
    {"GreaterOrEqual", WideOp::less_or_equal},
    {"Where", WideOp::select},
};

WideOp operation_of(const Node& node, const WideRow& row) {
  if (node.op == "Mod" && node.attributes.integer("fmod", 0) != 0) return WideOp::remainder;
  if (node.op == "BitShift" && node.attributes.text("direction") == "RIGHT") return WideOp::shift_right;
  return row.operation;
}

// The operands in the order of the operation.
std::vector<ValueId> operands_of(const Node& node, WideOp operation) {
  if (node.op == "Greater" || node.op == "GreaterOrEqual") return {node.inputs[1], node.inputs[0]};
  if (operation == WideOp::convert) return {node.inputs[0]};
  return node.inputs;
}

WideOperation describe(const Lowering& lowering, const Node& node, const WideRow& row) {
  const ValueId y = node.outputs[0];
  const WideOp operation = operation_of(node, row);
  const ValueId typed = node.inputs[operation == WideOp::select ? 1 : 0];
  return {.op = operation,
          .type = lowering.element_in_memory(typed),
          .result = lowering.type(y).element,
          .function = row.function,
          .extents = lowering.shape(y).extents(),
          .strides = {},
          .y_strides = lowering.view(y).strides};
}

// A step over these operands; what a step has written so far may be one of them.
Lowered emit_step(Lowering& lowering, const Node& node, WideOperation operation,
                  const std::vector<ValueId>& operands, bool goes_on) {
  const ValueId y = node.outputs[0];
  if (goes_on) operation.strides.push_back(operation.y_strides);
  for (const ValueId operand : operands)
    operation.strides.push_back(lowering.broadcast_strides(operand, lowering.shape(y)));
  auto kernel = kernels::prepare(operation);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs;
  for (const ValueId operand : operands) inputs.push_back(lowering.read(operand));
  const DraftOperand to = lowering.write(y);
  if (goes_on) inputs.insert(inputs.begin(), to);
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), {to});
  return {};
}

// All operands have the type that is computed in (but for a condition).
bool has_one_type(const Lowering& lowering, const std::vector<ValueId>& operands, const WideOperation& o) {
  const std::size_t first = o.op == WideOp::select ? 1 : 0;
  return std::all_of(operands.begin() + static_cast<std::ptrdiff_t>(first), operands.end(),
                     [&](ValueId id) { return lowering.element_in_memory(id) == o.type; });
}

Lowered lower_wide(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto* row = std::ranges::find(rows, node.op, &WideRow::op);
  const WideOperation operation = describe(lowering, node, *row);
  const std::vector<ValueId> operands = operands_of(node, operation.op);
  if (!has_one_type(lowering, operands, operation))
    return refuse("wide elements", "operands are of several types");
  const bool pairs = operation.op >= WideOp::add && operation.op <= WideOp::less_or_equal;
  const bool floating = is_floating(operation.type) && operation.type != ElementType::f64;
  if (floating && operation.op != WideOp::select && operation.op != WideOp::convert)
    return refuse("wide elements", "a type of vector programs");
  if (!pairs || operands.size() == 2) return emit_step(lowering, node, operation, operands, false);
  if (operands.size() < 2) return refuse("wide elements", "there is one operand");
  if (Lowered first = emit_step(lowering, node, operation, {operands[0], operands[1]}, false); !first)
    return first;
  for (std::size_t i = 2; i < operands.size(); ++i)
    if (Lowered next = emit_step(lowering, node, operation, {operands[i]}, true); !next) return next;
  return {};
}

// The larger of x and the lower limit, then the smaller of that and the upper one, where these are there.
Lowered lower_wide_clip(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ElementType type = lowering.element_in_memory(node.inputs[0]);
  if (is_floating(type) && type != ElementType::f64)
    return refuse("wide elements", "a type of vector programs");
  constexpr WideRow limits[] = {{"Clip", WideOp::largest}, {"Clip", WideOp::least}};
  bool continues = false;
  for (std::size_t i = 0; i < std::size(limits); ++i) {
    if (node.inputs.size() <= i + 1 || !node.inputs[i + 1].valid()) continue;
    const ValueId limit = node.inputs[i + 1];
    const std::vector<ValueId> operands = continues ? std::vector{limit} : std::vector{node.inputs[0], limit};
    if (Lowered step = emit_step(lowering, node, describe(lowering, node, limits[i]), operands, continues);
        !step)
      return step;
    continues = true;
  }
  if (!continues) return refuse("wide elements", "both limits are left out");
  return {};
}

constexpr auto table = [] {
  std::array<Lowerer, std::size(rows) + 1> result{};
  for (std::size_t i = 0; i < std::size(rows); ++i) result[i] = {rows[i].op, "wide elements", lower_wide};
  result.back() = {"Clip", "wide elements", lower_wide_clip};
  return result;
}();

}  // namespace

extern constinit const LowererFamily wide_lowerers{table};

}  // namespace superstep::target::cpu
