// Operators that ONNX Runtime writes into the files it has optimised (domain com.microsoft), as ONNX says
// them. Formulas: ONNX Runtime's ContribOperators.md.
#include <cmath>

#include "superstep/onnx/adapters/adapters.h"

namespace superstep::onnx {
namespace {

Var emit_gelu(NodeImport& node, Var x, bool approximate) {
  return node.emitter.emit1("Gelu", {x}, {{"approximate", std::string(approximate ? "tanh" : "none")}});
}

std::vector<Var> gelu(NodeImport& node) { return {emit_gelu(node, node.input(0), false)}; }

Var with_bias(NodeImport& node, std::size_t bias) {
  return node.has(bias) ? node.emitter.emit1("Add", {node.input(0), node.input(bias)}) : node.input(0);
}

std::vector<Var> bias_gelu(NodeImport& node) { return {emit_gelu(node, with_bias(node, 1), false)}; }
std::vector<Var> fast_gelu(NodeImport& node) { return {emit_gelu(node, with_bias(node, 1), true)}; }

std::vector<Var> quick_gelu(NodeImport& node) {
  const Var x = node.input(0);
  const double alpha = node.take_number("alpha", 1.702);
  const Var scaled = node.emitter.emit1("Mul", {x, node.emitter.scalar(x.element(), alpha)});
  return {node.emitter.emit1("Mul", {x, node.emitter.emit1("Sigmoid", {scaled})})};
}

Var transposed_ends(NodeImport& node, Var x) {
  std::vector<std::int64_t> order;
  for (int axis = 0; axis < x.shape().rank(); ++axis) order.push_back(axis);
  if (order.size() < 2) return x;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return node.emitter.emit1("Transpose", {x}, {{"perm", order}});
}

std::vector<Var> fused_matmul(NodeImport& node) {
  if (node.take_integer("transBatchA", 0) || node.take_integer("transBatchB", 0))
    refuse_node("attributes transBatchA and transBatchB are not supported");
  Var a = node.input(0), b = node.input(1);
  if (node.take_integer("transA", 0)) a = transposed_ends(node, a);
  if (node.take_integer("transB", 0)) b = transposed_ends(node, b);
  const double alpha = node.take_number("alpha", 1);
  const Var product = node.emitter.emit1("MatMul", {a, b});
  if (alpha == 1) return {product};
  return {node.emitter.emit1("Mul", {product, node.emitter.scalar(product.element(), alpha)})};
}

Var activated(NodeImport& node, Var x) {
  const std::string name = node.attributes.text("activation", "");
  if (name.empty()) return x;
  for (const char* plain : {"Relu", "Sigmoid", "Tanh"})
    if (name == plain) return node.emitter.emit1(name, {x});
  refuse_node("activation '" + name + "' is not supported");
}

template <const char* const& plain>
std::vector<Var> fused_activation(NodeImport& node) {
  const Attributes given = node.attributes;
  node.attributes.erase("activation");
  node.attributes.erase("activation_params");
  std::vector<Var> inputs(node.inputs.begin(),
                          node.inputs.begin() + std::min<long>(3, static_cast<long>(node.inputs.size())));
  Var y = node.emitter.emit1(plain, inputs, node.attributes);
  if (node.has(3)) y = node.emitter.emit1("Add", {y, node.input(3)});
  node.attributes = given;
  return {activated(node, y)};
}
constexpr const char* conv = "Conv";
constexpr const char* gemm = "Gemm";

// Inputs: input, skip, gamma, beta, bias. Outputs: the normalised sum, two that are unused, the sum.
std::vector<Var> skip_layer_normalization(NodeImport& node) {
  Var sum = node.emitter.emit1("Add", {node.input(0), node.input(1)});
  if (node.has(4)) sum = node.emitter.emit1("Add", {sum, node.input(4)});
  const Attributes attributes{{"axis", std::int64_t{-1}},
                              {"epsilon", node.attributes.number("epsilon", 1e-12)}};
  const Var y = node.emitter.emit1("LayerNormalization",
                                   {sum, node.input(2), node.has(3) ? node.input(3) : Var()}, attributes);
  return {y, Var(), Var(), sum};
}

constexpr std::int64_t oldest = 1;

constexpr Adapter table[] = {
    {"Gelu", oldest, any_later, gelu},
    {"BiasGelu", oldest, any_later, bias_gelu},
    {"FastGelu", oldest, any_later, fast_gelu},
    {"QuickGelu", oldest, any_later, quick_gelu},
    {"FusedMatMul", oldest, any_later, fused_matmul},
    {"FusedConv", oldest, any_later, fused_activation<conv>},
    {"FusedGemm", oldest, any_later, fused_activation<gemm>},
    {"SkipLayerNormalization", oldest, any_later, skip_layer_normalization},
};

}  // namespace

std::span<const Adapter> microsoft_adapters() { return table; }

}  // namespace superstep::onnx
