#include "superstep/lab/validate/primitive_graph.h"

#include <algorithm>
#include <map>

#include "superstep/base/text.h"
#include "superstep/lab/bench/configurations.h"
#include "superstep/lab/bench/primitive_graph.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"

namespace superstep::lab {
namespace {

constexpr std::int64_t largest_extent = 1 << 24;

std::optional<std::int64_t> extent(const std::string& text) {
  if (text.empty() || text.size() > 8 ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  const std::int64_t value = std::stoll(text);
  return value < 1 || value > largest_extent ? std::nullopt : std::optional(value);
}

graph::Graph product(std::int64_t m, std::int64_t n, std::int64_t k) {
  graph::Graph graph("gemm");
  op::Builder b(graph);
  const op::Var x = b.input("a", ElementType::f32, {m, k}), w = b.input("b", ElementType::f32, {k, n});
  b.output("c", op::matmul(x, w));
  return graph;
}

std::optional<graph::Graph> gemm(const std::string& size) {
  const Primitive* const known = published_primitive("gemm_" + size);
  const std::optional<Primitive> shape = known ? *known : product_named("gemm_" + split(size, '_')[0]);
  return shape ? std::optional(product(shape->m, shape->n, shape->k)) : std::nullopt;
}

// "w700" -> 700 by the letters before the number; "p1x2" gives p and its second number.
std::optional<std::map<std::string, std::int64_t>> fields(const std::string& name) {
  std::map<std::string, std::int64_t> values;
  for (const std::string& field : split(name, '_')) {
    const std::size_t digits = field.find_first_of("0123456789");
    if (digits == std::string::npos || digits == 0) continue;
    const std::string key = field.substr(0, digits);
    const std::vector<std::string> numbers = split(field.substr(digits), 'x');
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto value = numbers[i] == "0" ? std::optional<std::int64_t>(0) : extent(numbers[i]);
      if (!value) return std::nullopt;
      values[i == 0 ? key : key + "2"] = *value;
    }
  }
  for (const char* needed : {"w", "h", "c", "n", "k", "fw", "fh", "p", "p2", "s", "s2"})
    if (!values.contains(needed)) return std::nullopt;
  return values;
}

std::optional<graph::Graph> convolution(const std::string& name, const std::string& metric) {
  const auto found = fields(name);
  if (!found) return std::nullopt;
  const auto& f = *found;
  graph::Graph graph("conv");
  op::Builder b(graph);
  const auto at = [&](const char* key) { return f.at(key); };
  const op::ConvAttributes attributes{.strides = {at("s2"), at("s")},
                                      .pads = {at("p2"), at("p"), at("p2"), at("p")}};
  const op::Var x = b.input("x", ElementType::f32, {at("n"), at("c"), at("h"), at("w")});
  const op::Var w = b.input("w", ElementType::f32, {at("k"), at("c"), at("fh"), at("fw")});
  const op::Var y = op::conv(x, w, {}, attributes);
  if (metric != "time_backward_inputs" && metric != "time_backward_weights") {
    b.output("y", y);
    return graph;
  }
  const graph::Attributes own = graph.node(graph.value(y.id()).producer).attributes;
  graph::Graph back("conv gradient");
  op::Builder g(back);
  const op::Var dy = g.input("dy", ElementType::f32, y.shape());
  if (metric == "time_backward_inputs")
    g.output("dx", op::conv_input_gradient(dy, g.input("w", ElementType::f32, w.shape()), x.shape(), own));
  else
    g.output("dw", op::conv_weight_gradient(g.input("x", ElementType::f32, x.shape()), dy,
                                            {at("fh"), at("fw")}, own));
  return back;
}

}  // namespace

std::vector<std::string> kernels_of_set(const std::string& name) {
  if (name != "conv2d") return {};
  // Emani et al. 2022, Table VII, with the samples that a chip of 900 MB has room for in 32 bits: a kernel's
  // ratio of precisions does not depend on how many there are beyond.
  return {"conv_w7_h7_c32_n16384_k32_fw3_fh3_p0x0_s1x1", "conv_w14_h14_c128_n512_k256_fw3_fh3_p1x1_s1x1",
          "conv_w54_h54_c16_n8_k1024_fw3_fh3_p1x1_s1x1", "conv_w128_h128_c32_n16_k128_fw5_fh5_p0x0_s1x1"};
}

std::optional<graph::Graph> primitive_graph(const std::string& name, const std::string& metric) {
  try {
    if (name.starts_with("gemm_")) return gemm(name.substr(5));
    if (name.starts_with("conv_")) return convolution(name.substr(5), metric);
  } catch (const Error&) {
    return std::nullopt;  // a shape that is no convolution
  }
  return std::nullopt;
}

std::optional<graph::Graph> batched_primitive(const std::string& name, Passes passes, std::int64_t batch,
                                              std::size_t element_bytes) {
  const Primitive* const known = published_primitive(name);
  if (!known || (known->kind == PrimitiveKind::gemm && passes == Passes::forward)) return std::nullopt;
  const std::int64_t samples =
      batch > 0 && known->kind != PrimitiveKind::gemm ? batch : batch_at(*known, element_bytes);
  return primitive_graph(*known, PrimitiveOptions{.passes = passes})(samples);
}

}  // namespace superstep::lab
