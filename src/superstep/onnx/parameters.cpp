#include "superstep/onnx/parameters.h"

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/base/wildcard.h"
#include "superstep/onnx/roles.h"
#include "superstep/transform/rewrite.h"

namespace superstep::onnx {
namespace {

bool fits_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return fits(pattern, name); });
}

void require_found(const std::vector<std::string>& patterns, const std::vector<std::string>& names,
                   const char* option) {
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(names, [&](const std::string& name) { return fits(pattern, name); }))
      throw Error(ErrorCode::invalid_argument, "no floating initialiser of the model is called so",
                  std::string(option) + " " + pattern, unknown_name_hint(pattern, names));
}

}  // namespace

std::vector<Initializer> choose_trained(const graph::Graph& graph,
                                        const std::set<graph::ValueId>& initializers,
                                        const TrainChoice& choice) {
  const std::set<graph::ValueId> weights = weights_of(graph, initializers);
  const std::set<graph::ValueId> statistics = statistics_of(graph, initializers);
  std::vector<Initializer> result;
  std::vector<std::string> names;
  for (graph::ValueId id : initializers) {
    const graph::Value& value = graph.value(id);
    Initializer initializer{.name = value.name, .elements = value.type.shape.element_count()};
    const bool wanted = weights.contains(id) || fits_any(value.name, choice.train);
    if (statistics.contains(id))
      initializer.kind = Initializer::Kind::statistics;
    else if (wanted && !fits_any(value.name, choice.freeze))
      initializer.kind = Initializer::Kind::trained;
    result.push_back(std::move(initializer));
    names.push_back(value.name);
  }
  require_found(choice.train, names, "--train");
  require_found(choice.freeze, names, "--freeze");
  return result;
}

graph::Graph parameters_to_states(const graph::Graph& graph, const std::vector<Initializer>& initializers) {
  transform::Rewrite rewrite(graph);
  for (const Initializer& initializer : initializers) {
    const graph::ValueId id = graph.find_value(initializer.name);
    const bool read = graph.value(id).kind == graph::ValueKind::constant;
    if (initializer.kind != Initializer::Kind::kept && read)
      rewrite.replace(id, rewrite.builder().state(initializer.name, graph.value(id).data));
  }
  rewrite.visit_nodes([&](const graph::Node& node) { rewrite.keep(node); });
  return rewrite.finish();
}

}  // namespace superstep::onnx
