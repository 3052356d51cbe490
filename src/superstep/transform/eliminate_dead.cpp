#include <algorithm>

#include "superstep/transform/passes.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

bool has_unread_constants(const Graph& graph) {
  const std::vector<int> uses = graph.use_counts();
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    if (graph.values()[i].kind == graph::ValueKind::constant && uses[i] == 0) return true;
  return false;
}

}  // namespace

bool eliminate_dead(Graph& graph) {
  if (std::ranges::all_of(needed_nodes(graph), std::identity()) && !has_unread_constants(graph)) return false;
  graph = prune(graph);
  return true;
}

}  // namespace superstep::transform
