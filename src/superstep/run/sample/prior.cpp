#include "superstep/run/sample/prior.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::run {
namespace {

// How many numbers a weight's products are summed over: by the node that reads it.
std::int64_t fan_in(const graph::Graph& model, graph::ValueId state) {
  const Shape& shape = model.type(state).shape;
  if (shape.rank() < 2) return 1;  // a bias, a scale
  for (const graph::Node& node : model.nodes()) {
    if (node.inputs.size() < 2 || node.inputs[1] != state) continue;
    if (node.op == "MatMul") return shape[shape.rank() - 2];
    if (node.op == "Gemm" && node.attributes.integer("transB", 0) == 0) return shape[0];
  }
  return shape.element_count() / std::max<std::int64_t>(1, shape[0]);  // [out, in, ...]
}

}  // namespace

Prior prior_from_text(const std::string& text) {
  constexpr std::string_view scaled = "fan-in";
  Prior prior{.deviation = 1, .fan_in = text.starts_with(scaled)};
  std::string_view rest = text;
  if (prior.fan_in) {
    rest.remove_prefix(scaled.size());
    if (rest.empty()) return prior;
    if (rest.front() == ':') rest.remove_prefix(1);
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), prior.deviation);
  if (error != std::errc() || end != rest.data() + rest.size() || !(prior.deviation > 0) ||
      !std::isfinite(prior.deviation))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no prior", text), "--prior",
                "a standard deviation, as 1, or fan-in:1 for one that falls with a layer's width");
  return prior;
}

std::string to_string(const Prior& prior) {
  return prior.fan_in ? fmt::format("fan-in:{:g}", prior.deviation) : fmt::format("{:g}", prior.deviation);
}

double deviation_of(const Prior& prior, const graph::Graph& model, graph::ValueId state) {
  return prior.fan_in ? prior.deviation / std::sqrt(static_cast<double>(fan_in(model, state)))
                      : prior.deviation;
}

}  // namespace superstep::run
