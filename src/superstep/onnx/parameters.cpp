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
      throw Error(ErrorCode::invalid_argument, "no floating initializer of the model is called so",
                  std::string(option) + " " + pattern, unknown_name_hint(pattern, names));
}

}  // namespace

SaidOfInitializers said_of_initializers(const std::map<std::string, std::string>& metadata) {
  const auto names = [&](const char* key) {
    std::set<std::string, std::less<>> found;
    if (const auto text = metadata.find(key); text != metadata.end())
      for (std::string& name : split(text->second, '\n')) found.insert(std::move(name));
    return found;
  };
  return {.trained = names(trained_key), .kept = names(kept_key)};
}

std::vector<Initializer> choose_trained(const graph::Graph& graph,
                                        const std::set<graph::ValueId>& initializers,
                                        const SaidOfInitializers& said, const TrainChoice& choice) {
  const std::set<graph::ValueId> weights = weights_of(graph, initializers);
  const std::set<graph::ValueId> statistics = statistics_of(graph, initializers);
  std::vector<Initializer> result;
  std::vector<std::string> names;
  for (graph::ValueId id : initializers) {
    const graph::Value& value = graph.value(id);
    Initializer initializer{.name = value.name, .elements = value.type.shape.element_count()};
    const bool is_weight =
        said.trained.contains(value.name) || (weights.contains(id) && !said.kept.contains(value.name));
    const bool wanted = is_weight || fits_any(value.name, choice.train);
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
