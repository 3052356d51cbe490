// Layers: products, convolutions, pooling, normalizations, attention, embeddings, dropout.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "superstep/base/error.h"
#include "superstep/onnx/exported/aten.h"

namespace superstep::onnx {
namespace {

using Names = Translation::Names;
using Integers = std::vector<std::int64_t>;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::unsupported, why); }

std::size_t rank_of(const Translation& t, const std::string& exported) {
  return t.program().extents(exported).size();
}

// "other" of one number stands for all axes of a window.
Integers of_window(const ExportedCall& c, const char* argument, std::size_t axes, std::int64_t otherwise) {
  Integers values = c.integers(argument, Integers{otherwise});
  if (values.empty()) values = {otherwise};
  if (values.size() == 1) values.resize(axes, values[0]);
  if (values.size() != axes) refuse(fmt::format("its argument '{}' has {} numbers", argument, values.size()));
  return values;
}

Integers twice(Integers pads) {
  const Integers once = pads;
  pads.insert(pads.end(), once.begin(), once.end());
  return pads;
}

// A vector of one number for each channel, where a layer has none of its own.
std::string channels(Translation& t, const ExportedCall& c, const char* argument, std::int64_t count,
                     double value) {
  if (c.has(argument)) return t.value(c.tensor(argument));
  const std::int64_t type = t.program().type(c.tensor("input")).onnx;
  return t.node1("Expand", {t.number(type, value), t.integers({count})});
}

// --- products

void linear(Translation& t, const ExportedCall& c) {
  const std::string x = t.value(c.tensor("input")), weight = t.value(c.tensor("weight"));
  const std::string bias = t.value(c.tensor("bias"));
  if (rank_of(t, c.tensor("input")) == 2)
    return t.node("Gemm", {x, weight, bias}, c.outputs(), {{"transB", std::int64_t{1}}});
  const std::string turned = t.node1("Transpose", {weight}, {{"perm", Integers{1, 0}}});
  if (bias.empty()) return t.node("MatMul", {x, turned}, c.outputs());
  t.node("Add", {t.node1("MatMul", {x, turned}), bias}, c.outputs());
}

void matrix_product(Translation& t, const ExportedCall& c) {
  const char* second = c.has("mat2") ? "mat2" : "other";
  t.node("MatMul", {t.value(c.tensor("self")), t.value(c.tensor(second))}, c.outputs());
}

// beta self + alpha mat1 mat2
void added_product(Translation& t, const ExportedCall& c) {
  t.node("Gemm", {t.value(c.tensor("mat1")), t.value(c.tensor("mat2")), t.value(c.tensor("self"))},
         c.outputs(), {{"alpha", c.real("alpha", 1)}, {"beta", c.real("beta", 1)}});
}

void einsum(Translation& t, const ExportedCall& c) {
  Names inputs;
  for (const std::string& each : c.tensors("tensors")) inputs.push_back(t.value(each));
  t.node("Einsum", inputs, c.outputs(), {{"equation", c.text("equation", "")}});
}

void attention(Translation& t, const ExportedCall& c) {
  if (rank_of(t, c.tensor("query")) != 4)
    refuse("attention of other than four axes (batch, heads, length, features) is not read");
  if (c.real("dropout_p", 0) != 0) refuse("its attention drops out");
  Translation::Attributes attributes{{"is_causal", std::int64_t{c.yes("is_causal", false)}}};
  if (c.has("scale")) attributes.emplace_back("scale", c.real("scale"));
  t.node("Attention",
         {t.value(c.tensor("query")), t.value(c.tensor("key")), t.value(c.tensor("value")),
          t.value(c.tensor("attn_mask"))},
         c.outputs(), attributes);
}

void embedding(Translation& t, const ExportedCall& c) {
  t.node("Gather", {t.value(c.tensor("weight")), t.value(c.tensor("indices"))}, c.outputs(),
         {{"axis", std::int64_t{0}}});
}

// --- convolutions

void convolution(Translation& t, const ExportedCall& c) {
  if (rank_of(t, c.tensor("weight")) < 3) refuse("its kernel has no window");
  const std::size_t axes = rank_of(t, c.tensor("weight")) - 2;
  if (rank_of(t, c.tensor("input")) != axes + 2) refuse("its input has no axis for the batch");
  const bool transposed = c.base().starts_with("conv_transpose") || c.yes("transposed", false);
  Translation::Attributes attributes{{"strides", of_window(c, "stride", axes, 1)},
                                     {"dilations", of_window(c, "dilation", axes, 1)},
                                     {"group", c.integer("groups", 1)}};
  if (c.op().ends_with(".padding"))  // "valid", or "same", which puts what is odd behind
    attributes.emplace_back("auto_pad", c.text("padding", "valid") == "same" ? "SAME_UPPER" : "VALID");
  else
    attributes.emplace_back("pads", twice(of_window(c, "padding", axes, 0)));
  if (transposed) attributes.emplace_back("output_padding", of_window(c, "output_padding", axes, 0));
  t.node(transposed ? "ConvTranspose" : "Conv",
         {t.value(c.tensor("input")), t.value(c.tensor("weight")), t.value(c.tensor("bias"))}, c.outputs(),
         attributes);
}

// --- pooling

std::size_t window_axes(const Translation& t, const ExportedCall& c) {
  const std::size_t axes = static_cast<std::size_t>(c.base().at(c.base().find("pool") + 4) - '0');
  if (rank_of(t, c.tensor("self")) != axes + 2) refuse("its input has no axis for the batch");
  return axes;
}

Translation::Attributes window_of(const ExportedCall& c, std::size_t axes) {
  if (c.yes("ceil_mode", false)) refuse("its windows may end beyond the input (ceil_mode)");
  const Integers kernel = of_window(c, "kernel_size", axes, 1);
  Integers strides = c.integers("stride", Integers{});
  strides = strides.empty() ? kernel : of_window(c, "stride", axes, 1);
  return {{"kernel_shape", kernel}, {"strides", strides}, {"pads", twice(of_window(c, "padding", axes, 0))}};
}

void max_pool(Translation& t, const ExportedCall& c) {
  const std::size_t axes = window_axes(t, c);
  Translation::Attributes attributes = window_of(c, axes);
  attributes.emplace_back("dilations", of_window(c, "dilation", axes, 1));
  t.node("MaxPool", {t.value(c.tensor("self"))}, {c.outputs().at(0)}, attributes);
}

void average_pool(Translation& t, const ExportedCall& c) {
  if (c.has("divisor_override")) refuse("its divisor is another than the window (divisor_override)");
  Translation::Attributes attributes = window_of(c, window_axes(t, c));
  attributes.emplace_back("count_include_pad", std::int64_t{c.yes("count_include_pad", true)});
  t.node("AveragePool", {t.value(c.tensor("self"))}, c.outputs(), attributes);
}

// To extents that divide those of the input.
void adaptive_pool(Translation& t, const ExportedCall& c) {
  const std::size_t axes = window_axes(t, c);
  const Integers wanted = of_window(c, "output_size", axes, 1);
  const std::string x = t.value(c.tensor("self"));
  if (std::ranges::all_of(wanted, [](std::int64_t extent) { return extent == 1; }))
    return t.node("GlobalAveragePool", {x}, c.outputs());
  const std::vector<ExportedExtent> extents = t.program().extents(c.tensor("self"));
  Integers kernel;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t extent = extents[i + 2].value;
    if (extent < 0 || wanted[i] < 1 || extent % wanted[i] != 0)
      refuse(fmt::format("its input is not divided evenly into {} windows", wanted[i]));
    kernel.push_back(extent / wanted[i]);
  }
  t.node("AveragePool", {x}, c.outputs(), {{"kernel_shape", kernel}, {"strides", kernel}});
}

// --- normalizations

// Batch normalization in training keeps its running statistics by itself: ONNX gives what they become.
void batch_norm(Translation& t, const ExportedCall& c) {
  if (!c.has("running_mean") || !c.has("running_var")) refuse("it keeps no running statistics");
  const std::int64_t count = t.program().extents(c.tensor("running_mean")).at(0).value;
  const bool training = c.yes("training", false);
  Names outputs = {c.outputs().at(0)};
  if (training) {
    if (!c.has("momentum")) refuse("its statistics are averaged over all steps (momentum=None)");
    outputs.push_back(c.name() + ".running_mean"), outputs.push_back(c.name() + ".running_var");
  }
  t.node("BatchNormalization",
         {t.value(c.tensor("input")), channels(t, c, "weight", count, 1), channels(t, c, "bias", count, 0),
          t.value(c.tensor("running_mean")), t.value(c.tensor("running_var"))},
         outputs,
         {{"epsilon", c.real("eps", 1e-5)},
          {"momentum", 1 - c.real("momentum", 0.1)},
          {"training_mode", std::int64_t{training}}});
}

void layer_norm(Translation& t, const ExportedCall& c) {
  const Integers shape = c.integers("normalized_shape");
  std::string scale = t.value(c.tensor("weight"));
  if (scale.empty())
    scale = t.node1("Expand", {t.number(t.program().type(c.tensor("input")).onnx, 1), t.integers(shape)});
  t.node("LayerNormalization", {t.value(c.tensor("input")), scale, t.value(c.tensor("bias"))},
         {c.outputs().at(0)},
         {{"axis", -static_cast<std::int64_t>(shape.size())}, {"epsilon", c.real("eps", 1e-5)}});
}

void group_norm(Translation& t, const ExportedCall& c) {
  const std::int64_t count = t.program().extents(c.tensor("input")).at(1).value;
  if (count < 0) refuse("its number of channels is not known");
  t.node("GroupNormalization",
         {t.value(c.tensor("input")), channels(t, c, "weight", count, 1), channels(t, c, "bias", count, 0)},
         c.outputs(), {{"num_groups", c.integer("num_groups")}, {"epsilon", c.real("eps", 1e-5)}});
}

void softmax(Translation& t, const ExportedCall& c) {
  const bool logarithm = c.base().ends_with("log_softmax");
  if (c.yes("half_to_float", false)) refuse("it changes the type of its numbers");
  std::string x = t.value(c.tensor("self"));
  if (const std::int64_t type = t.program().type(c.outputs().at(0)).onnx;
      t.program().type(c.tensor("self")).onnx != type)
    x = t.cast(x, type);
  t.node(logarithm ? "LogSoftmax" : "Softmax", {x}, c.outputs(), {{"axis", c.integer("dim")}});
}

void dropout(Translation& t, const ExportedCall& c) {
  const std::string x = t.value(c.tensor("input"));
  if (!c.yes("train", true)) return t.node("Identity", {x}, c.outputs());
  t.node("Dropout", {x, t.number(onnx_f32, c.real("p", 0.5)), t.number(onnx_bool, 1)}, {c.outputs().at(0)});
}

constexpr auto table = std::to_array<AtenOperator>({
    {"linear", linear},
    {"matmul", matrix_product},
    {"mm", matrix_product},
    {"bmm", matrix_product},
    {"addmm", added_product},
    {"einsum", einsum},
    {"scaled_dot_product_attention", attention},
    {"embedding", embedding},
    {"conv1d", convolution},
    {"conv2d", convolution},
    {"conv3d", convolution},
    {"convolution", convolution},
    {"conv_transpose1d", convolution},
    {"conv_transpose2d", convolution},
    {"conv_transpose3d", convolution},
    {"max_pool1d", max_pool},
    {"max_pool2d", max_pool},
    {"max_pool3d", max_pool},
    {"avg_pool1d", average_pool},
    {"avg_pool2d", average_pool},
    {"avg_pool3d", average_pool},
    {"adaptive_avg_pool1d", adaptive_pool},
    {"adaptive_avg_pool2d", adaptive_pool},
    {"adaptive_avg_pool3d", adaptive_pool},
    {"batch_norm", batch_norm},
    {"layer_norm", layer_norm},
    {"group_norm", group_norm},
    {"softmax", softmax},
    {"_softmax", softmax},
    {"log_softmax", softmax},
    {"_log_softmax", softmax},
    {"dropout", dropout},
});

}  // namespace

std::span<const AtenOperator> aten_layers() { return table; }

}  // namespace superstep::onnx
