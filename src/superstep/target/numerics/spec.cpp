#include "superstep/target/numerics/spec.h"

#include <algorithm>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/base/wildcard.h"

namespace superstep::target::numerics {
namespace {

using superstep::numerics::Arithmetic;

bool fits_node(const std::string& pattern, const graph::Node& node) {
  return fits(pattern, node.name) || fits(pattern, forward_name(node.name));
}

const Arithmetic& in_f32() {
  static const Arithmetic arithmetic;
  return arithmetic;
}

}  // namespace

std::string_view forward_name(std::string_view name) {
  while (name.starts_with("d(") && name.ends_with(")")) name = name.substr(2, name.size() - 3);
  return name;
}

const Arithmetic& Spec::of(const graph::Node& node) const {
  for (auto each = nodes.rbegin(); each != nodes.rend(); ++each)
    if (fits_node(each->pattern, node)) return each->arithmetic.arithmetic;
  const std::string_view name = forward_name(node.name);
  const bool loss = name == "loss" || name.starts_with("loss/") || name.starts_with("loss.");
  return loss ? in_f32() : base.arithmetic;
}

Spec parse_spec(std::string_view text) {
  const std::vector<std::string> parts = split(text, ';');
  Spec spec{.base = machine::find_arithmetic(parts[0]), .nodes = {}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorCode::invalid_argument, "the arithmetic of nodes is PATTERN=NAME", parts[i],
                  "for example encoder.*=f16");
    spec.nodes.push_back({parts[i].substr(0, equals), machine::find_arithmetic(parts[i].substr(equals + 1))});
  }
  return spec;
}

void check_patterns(const Spec& spec, const graph::Graph& graph) {
  for (const NodeArithmetic& each : spec.nodes) {
    const auto is_it = [&](const graph::Node& node) { return fits_node(each.pattern, node); };
    if (std::ranges::any_of(graph.nodes(), is_it)) continue;
    std::set<std::string> names;
    for (const graph::Node& node : graph.nodes())
      if (!node.name.empty()) names.emplace(forward_name(node.name));
    throw Error(ErrorCode::invalid_argument, "no node of the model is called so", each.pattern,
                unknown_name_hint(each.pattern, std::vector<std::string>(names.begin(), names.end())));
  }
}

}  // namespace superstep::target::numerics
