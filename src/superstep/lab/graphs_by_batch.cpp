#include "superstep/lab/graphs_by_batch.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/machine/work.h"

namespace superstep::lab {

void require_cost_models(const run::Model& model, const graph::Graph& graph) {
  const auto works = machine::works_of(graph, machine::precision_from_name("f32"));
  const std::vector<std::string> missing = machine::unsupported_operators(works);
  if (!missing.empty())
    throw Error(ErrorCode::unsupported, fmt::format("no cost model for {}", join(missing, ", ")),
                model.settings().workload);
}

}  // namespace superstep::lab
