// What `superstep graph` makes of a model: the list of passes on its way to a target, run, watched,
// bisected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/transform/pass.h"

namespace superstep::cli {

struct GraphRequest {
  std::string workload;  // of the zoo, or a model file
  std::string mode = "infer", precision = "f32";
  std::string on;          // a target, or "onnx"; empty: as the model is described
  std::int64_t batch = 0;  // 0: 1, or what a file fixes; of a bisection 2
  std::int64_t parts = 1;  // of a batch that run in step
  double recompute = 0;    // share of the operations that may be done again
  std::string after;       // stop after this pass; empty: after the last
  std::vector<std::string> skip;
  std::filesystem::path dump;
  std::vector<std::string> model_options, shapes, bounds;
  std::string loss;
};

// A graph and what it goes through.
struct PassList {
  graph::Graph graph;
  std::vector<transform::Pass> passes;
};
// `all`: with the passes of the target, those of every target where none is named.
PassList passes_of(const GraphRequest& request, bool all);

// Runs them and gives the graph at the end, or after the pass that was asked for. `listed`: prints a table of
// what each did.
graph::Graph run_listed(PassList list, const GraphRequest& request, bool listed);

// Prints what every pass changes of the results. Throws Error (bad_graph) naming the pass that changes more
// than it may.
void print_bisection(const PassList& list, const GraphRequest& request);

}  // namespace superstep::cli
