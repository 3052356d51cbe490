// Graphs of a model by micro-batch, each made once, for predictions on several threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "superstep/base/error.h"
#include "superstep/graph/graph.h"
#include "superstep/run/model.h"

namespace superstep::lab {

class GraphsByBatch {
 public:
  GraphsByBatch(const run::Model& model, bool trains)
      : at_(trains ? model.training_step() : model.inference()) {}

  // Good for as long as this lives.
  const graph::Graph& at(std::int64_t batch) {
    const std::lock_guard lock(mutex_);
    auto& found = made_[batch];
    if (!found) found = std::make_unique<graph::Graph>(at_(batch));
    return *found;
  }

 private:
  target::GraphAtBatch at_;
  std::mutex mutex_;
  std::map<std::int64_t, std::unique_ptr<graph::Graph>> made_;
};

// Throws Error (unsupported) naming the operators of the graph that no machine's cost model knows.
void require_cost_models(const run::Model& model, const graph::Graph& graph);

}  // namespace superstep::lab
