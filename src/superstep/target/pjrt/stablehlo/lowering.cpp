#include "superstep/target/pjrt/stablehlo/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/base/error.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::stablehlo {
namespace {

constexpr std::span<const Lowering> (*families[])() = {
    elementwise_lowerings, activation_lowerings, logic_lowerings,        product_lowerings,
    convolution_lowerings, window_lowerings,     move_lowerings,         index_lowerings,
    rows_lowerings,        random_lowerings,     quantization_lowerings, spectral_lowerings,
    detection_lowerings,   recurrent_lowerings,
};

// What there is no lowering of, and why.
struct Refusal {
  std::string_view op, why;
};
constexpr Refusal refusals[] = {
    {"TfIdfVectorizer",
     "looking up groups of words is work for the processor: run it there, before the model"},
};

bool is_reduced(ElementType element) { return element == ElementType::f16 || element == ElementType::bf16; }

// Known before the program runs, whatever is given to it.
bool of_nothing(const op::Definition& definition) {
  if (definition.max_inputs < 0 || definition.max_inputs > 31) return false;
  const std::uint32_t all = (std::uint32_t{1} << definition.max_inputs) - 1;
  return (definition.shape_inputs & all) == all;
}

std::vector<Value> evaluated(const Site& site) {
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < site.node.inputs.size(); ++i)
    inputs.push_back(site.node.inputs[i].valid() ? site.known(i) : nullptr);
  std::vector<Value> results;
  for (const Tensor& tensor : op::evaluate_node(site.graph, site.node, inputs))
    results.push_back(site.wants(results.size()) ? site.emit.constant(tensor) : Value());
  return results;
}

bool all_known(const Site& site) {
  for (std::size_t i = 0; i < site.node.inputs.size(); ++i)
    if (site.node.inputs[i].valid() && !site.known(i)) return false;
  return true;
}

Site widened(const Site& site) {
  Site wide = site;
  for (Value& input : wide.inputs)
    if (input.valid() && is_reduced(input.element())) input = site.emit.convert(input, ElementType::f32);
  return wide;
}

[[noreturn]] void refuse(const Site& site) {
  const bool too_late = road_of(site.node.op) == Road::constant;
  const std::string_view why =
      too_late ? "its inputs must be known before the program runs" : refusal_of(site.node.op);
  throw Error(ErrorCode::unsupported,
              fmt::format("is not lowered to StableHLO{}{}", why.empty() ? "" : ": ", why),
              transform::describe(site.node), "use --on cpu");
}

}  // namespace

const Tensor* Site::known(std::size_t input) const {
  if (input >= node.inputs.size() || !node.inputs[input].valid()) return nullptr;
  const graph::Value& value = graph.value(node.inputs[input]);
  return value.kind == graph::ValueKind::constant ? &value.data : nullptr;
}

std::vector<std::int64_t> Site::integers(std::size_t input, std::string_view name) const {
  const Tensor* const tensor = known(input);
  if (!tensor)
    throw Error(ErrorCode::unsupported,
                fmt::format("input {} must be known when the program is written", name));
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < tensor->element_count(); ++i)
    result.push_back(tensor->type() == ElementType::i64
                         ? tensor->as<std::int64_t>()[static_cast<std::size_t>(i)]
                         : static_cast<std::int64_t>(tensor->at(i)));
  return result;
}

int Site::axis(std::int64_t otherwise, int rank) const {
  return normalize_axis(attributes().integer("axis", otherwise), rank);
}

bool Site::is_settled(std::size_t input) const { return settled && settled->holds(node.inputs[input]); }

Value Site::prepared(std::size_t input, const std::string& form, const Settled::Make& make) const {
  return settled->value(node.inputs[input], form, make);
}

const Lowering* find_lowering(std::string_view op) {
  static const std::map<std::string_view, const Lowering*> table = [] {
    std::map<std::string_view, const Lowering*> rows;
    for (const auto family : families)
      for (const Lowering& lowering : family()) rows.emplace(lowering.op, &lowering);
    return rows;
  }();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

std::string_view refusal_of(std::string_view op) {
  const auto found = std::ranges::find(refusals, op, &Refusal::op);
  return found == std::end(refusals) ? std::string_view() : found->why;
}

bool is_made_of_parts(const graph::Graph& graph, const graph::Node& node) {
  const Lowering* const lowering = find_lowering(node.op);
  if (!lowering) return road_of(node.op) == Road::parts;
  return lowering->takes && !lowering->takes(graph, node);
}

Road road_of(std::string_view op) {
  const op::Definition& definition = op::get(op);
  if (find_lowering(op)) return Road::lowered;
  if (definition.decompose) return Road::parts;
  const bool before_the_run = definition.traits.work == op::WorkKind::view || of_nothing(definition);
  return before_the_run ? Road::constant : Road::refused;
}

std::vector<Value> lower_node(const Site& site) {
  const Lowering* const lowering = find_lowering(site.node.op);
  if (!lowering && !all_known(site)) refuse(site);
  std::vector<Value> results;
  try {
    if (!lowering)
      results = evaluated(site);
    else
      results = lowering->lower(lowering->inputs == Inputs::widened ? widened(site) : site);
  } catch (const Error& error) {
    throw error.in(transform::describe(site.node));
  }
  for (std::size_t i = 0; i < results.size() && i < site.node.outputs.size(); ++i)
    if (site.wants(i) && results[i].valid()) results[i] = site.emit.convert(results[i], site.out(i).element);
  return results;
}

}  // namespace superstep::target::stablehlo
