// A loss appended to a graph under construction: its terms, and the inputs that it gets as targets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "superstep/transform/rewrite.h"
#include "superstep/transform/training/loss.h"

namespace superstep::transform {

// Throws Error (bad_graph) where the graph has a value of this name already.
void require_free_name(const Graph& graph, const std::string& name);

class AppendedLoss : private LossPorts {
 public:
  // Of a model whose nodes have been visited. Both outlive this.
  AppendedLoss(Rewrite& rewrite, const Graph& model)
      : rewrite_(rewrite), builder_(rewrite.builder()), model_(model) {}

  // A term without its weight. Terms that name the same target share it.
  Var term(const LossTerm& term);
  // What the model builds itself; throws Error (bad_graph) where that is not one number.
  Var own(const BuildLoss& build);
  // The weighted sum of all. Throws Error (invalid_argument) where there is nothing to add.
  Var sum(const LossSpec& loss);

 private:
  Var input(const std::string& name) override;
  Var output(const std::string& name) override { return model_output(name); }
  bool has_output(const std::string& name) const override { return model_.find_output(name).valid(); }
  Var target(const std::string& name, const graph::ValueType& type) override;
  Var model_output(const std::string& name);
  Var new_target(const std::string& name, const graph::ValueType& type);

  Rewrite& rewrite_;
  Builder& builder_;
  const Graph& model_;
  std::vector<std::pair<std::string, Var>> targets_;
};

}  // namespace superstep::transform
