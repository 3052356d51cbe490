// One graph in two arithmetics, node by node: where results part, and which nodes it comes from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/target/numerics/spec.h"
#include "superstep/target/target.h"

namespace superstep::lab {

struct NodeDifference {
  std::string name, op;
  std::string way;       // how it is computed: target::numerics::Way
  std::string with;      // its arithmetic, in words
  bool differs = false;  // its arithmetic is another one, and something is computed
  // Of its results, everything before it in the other arithmetic, too: the root mean square of the difference
  // over that of the results. Infinite where they are not finite and the others are.
  double error = 0;
  double growth = 0;  // over the largest error of what it reads; 0: that has none
  // Of the final difference where this node alone is in the other arithmetic, and its square's part of the
  // sum over all nodes. Below 0: not asked for, because a range of nodes that holds it makes less than
  // NodeQuestion::least_share.
  double alone = -1, share = -1;
  std::vector<std::size_t> reads;  // nodes, by their number here
};

// A change of the culprit's arithmetic, all other nodes staying as they are, and what is left of the
// difference.
struct Cure {
  std::string setting, value;  // "sums", "f32"; "all", "f32": the other arithmetic altogether
  double difference = 0;
};

struct NodeDifferences {
  double difference = 0;              // of the outputs: as NodeDifference::error
  std::vector<std::string> outputs;   // what it is taken of
  std::vector<NodeDifference> nodes;  // in the order of the graph
  std::size_t culprit = 0;            // with the largest share; of no difference: 0
  std::vector<Cure> cures;            // of the culprit, those that change something
  bool found() const { return difference > 0 && !nodes.empty() && nodes[culprit].share > 0; }
};

struct NodeQuestion {
  std::int64_t batch = 1;
  int threads = 1;
  target::numerics::Spec of, with;
  // Ranges of nodes that alone make less of the sum of squares are not looked into. Chosen: a culprit makes
  // most of it, and each range costs a run.
  double least_share = 0.02;
};

// `states` by name, the graph's own for those that are not given. Throws what Emulation does.
NodeDifferences node_differences(const target::GraphAtBatch& model, const NodeQuestion& question,
                                 const std::vector<Tensor>& inputs,
                                 const std::map<std::string, Tensor>& states = {});

// Root mean square of the difference over that of `of`; infinite where `with` alone is not finite.
double relative_difference(const Tensor& of, const Tensor& with);

}  // namespace superstep::lab
