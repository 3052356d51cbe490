// What a program makes of states and constants alone is the same in every run: it is made by a program of its
// own, once, and comes to the other as arguments. Compilers cannot do that, who are given states as
// arguments.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/pjrt/stablehlo/inlined.h"
#include "superstep/target/pjrt/stablehlo/settled.h"

namespace superstep::target::stablehlo {

// Of each value of a graph, whether it follows from constants and from states that no run changes. What has
// more elements than it is made of is not among them: it is cheaper made than read.
std::vector<bool> settled_values(const graph::Graph& graph);

class Preparation : public Settled {
 public:
  // `constants`: those that are arguments of both programs. The graph must live as long.
  Preparation(const graph::Graph& graph, std::span<const graph::ValueId> constants, std::int64_t first_row);

  bool takes(const graph::Node& node) const override;
  bool holds(graph::ValueId id) const override;
  const graph::Node* view_of(graph::ValueId id) const override;
  using Settled::value;
  Value value(graph::ValueId id, const std::string& form, const Make& make) override;

  // What the other program takes, in the order of this one's results.
  std::span<const Value> arguments() const { return arguments_; }

  // The end: arguments are all states, then the constants; results what the other program takes, then, where
  // there are any, truths that say which of the refusals were met.
  struct Text {
    std::vector<std::pair<std::string, Type>> arguments;
    std::vector<Value> results;
    std::vector<std::string> refusals;
    std::string body;
  };
  Text finish();

 private:
  const graph::Graph& graph_;
  std::vector<bool> settled_, is_argument_;  // by value
  Emitter emit_;
  NodesInProgram nodes_;
  std::vector<std::pair<std::string, Type>> own_arguments_;
  std::vector<Value> arguments_, results_;  // one for one: there, and here
  std::map<std::pair<std::uint32_t, std::string>, Value> made_;
};

// The truths of an emitter's refusals in one value, and their words.
Value truths_of(Emitter& emit, std::vector<std::string>& words);

}  // namespace superstep::target::stablehlo
