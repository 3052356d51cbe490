// The models of the zoo, built small, for tests of targets.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "superstep/op/elementwise/activation.h"
#include "superstep/target/target.h"
#include "superstep/transform/rewrite.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::test {

struct Model {
  const char* workload;
  std::vector<std::string> options;
  std::int64_t batch;
  double tolerance = 2e-4;  // of gradients, relative to the largest
  float rate = 2e-3f;       // at which one batch is learnt; 0: single losses say nothing, for dropout, or
                            // random numbers are nothing that it can learn (no crystal diffracts them)
  bool smooth = false;      // rectifiers replaced by a function without a kink
};

// The names of tests: those of the workloads, and what sets a second case of one apart.
inline void PrintTo(const Model& model, std::ostream* out) {
  *out << model.workload;
  for (const std::string& option : model.options)
    if (option.starts_with("dropout") || option.starts_with("encoder") || option.starts_with("stochastic") ||
        option.starts_with("size=heavy") || option.starts_with("sequences") ||
        option.starts_with("group-width=16"))
      *out << "-" << option;
  if (model.smooth) *out << "-smooth";
}

// Where few samples are left to normalise over, one rectifier on the other side of its kink moves a gradient
// by some hundredths: hence the tolerance of the deepest model. Without kinks it is held to a two-hundredth
// of that, which is twice what others are: its fifty layers add up the rounding of Winograd's sums.
inline std::vector<Model> zoo_models() {
  return {{"ptychonn-64", {"window=16"}, 2},
          {"ptychonn-128", {"window=16"}, 2},
          {"cookienetae",
           {"size=16", "width=16"},
           2},  // of four channels the last rectifier passes next to nothing
          {"pca-compress-128", {"side=12", "components=6"}, 4, 2e-4, 2e-2f},  // its basis is kept times 128
          {"sobel-800", {"side=16", "window=5", "start=random"}, 3},
          {"image-autoencoder", {"size=8", "width=4", "bottleneck=2"}, 4, 4e-4},
          {"conductivity", {"side=16", "width=4"}, 4, 4e-4},
          {"conductivity", {"side=16", "width=4", "size=heavy"}, 4, 4e-4},
          {"gravity-wave-drag", {"levels=21", "width=32", "layers=2"}, 4},
          {"uno", {"width=24", "dropout=0.1"}, 4, 2e-4, 0},
          {"uno", {"width=24", "dropout=0"}, 4},
          {"polymer-gcn", {"atoms=16", "edges=24", "polymers=12", "width=8"}, 4, 2e-4, 5e-2f},
          {"polymer-mpnn", {"atoms=16", "edges=24", "polymers=12", "width=8"}, 4, 2e-4, 5e-2f},
          {"gin", {"atoms=16", "edges=24", "molecules=12", "width=8", "dropout=0"}, 4, 2e-4, 5e-2f},
          {"schnet", {"atoms=16", "edges=24", "clusters=10", "width=8", "blocks=2"}, 4, 2e-4, 5e-3f},
          {"deepmd",
           {"types=Cu,Ni", "atoms=6,4", "sel=7,5", "embedding=4,8", "axis=3", "fitting=8,8", "cutoff=2"},
           4,
           2e-4,
           5e-3f},
          {"yieldgnn",
           {"atoms=16", "edges=24", "reactions=10", "largest=16", "width=32", "dropout=0"},
           4,
           2e-4,
           5e-3f},
          {"unet-64", {"size=16", "width=4"}, 3},
          {"autophasenn", {"size=32", "width=2"}, 2, 2e-4, 0},
          {"autophasenn", {"size=32", "width=2", "encoder=strided"}, 2, 2e-4, 0},
          {"resnet50", {"size=64", "classes=10", "zero-last=no", "width=8"}, 4, 8e-2},
          {"resnet50", {"size=64", "classes=10", "zero-last=no", "width=8"}, 4, 4e-4, 2e-3f, true},
          {"mobilenet-v3-small", {"size=32", "classes=10"}, 4, 3e-3},
          {"efficientnet-b0", {"size=32", "classes=10"}, 4, 3e-3},
          {"efficientnet-b0", {"size=32", "classes=10", "group-width=16", "expansion=4", "norm=group"}, 4},
          {"efficientnet-b0", {"size=32", "classes=10", "stochastic-depth=0.5"}, 8, 5e-3, 0},
          {"bert-small", {"layers=2", "width=32", "heads=2", "length=12", "vocabulary=80"}, 4},
          {"bert-large", {"layers=2", "width=32", "heads=2", "length=12", "vocabulary=80"}, 4},
          {"bert-large", {"layers=2", "width=32", "heads=2", "length=12", "vocabulary=80", "sequences=2"}, 4},
          {"bert-base-squad", {"layers=2", "width=32", "heads=2", "length=12", "vocabulary=80"}, 4},
          {"gpt2", {"layers=2", "width=32", "heads=2", "length=12", "positions=16", "vocabulary=80"}, 4},
          {"llama", {"width=32", "heads=4", "inner=40", "length=12", "vocabulary=80"}, 4},
          {"vit-base", {"size=32", "patch=8", "layers=2", "width=32", "heads=2", "classes=10"}, 4},
          {"lstm", {"steps=7", "inputs=5", "units=32"}, 4}};
}

inline graph::Graph without_kinks(const graph::Graph& graph) {
  return transform::rewrite(graph, [](transform::Rewrite& rewrite, const graph::Node& node) {
    if (node.op != "Relu") return rewrite.keep(node);
    const op::Var smooth = op::tanh(rewrite.now(node.inputs[0]));
    rewrite.replace(node, std::span(&smooth, 1));
  });
}

inline graph::Graph build(const Model& model, std::int64_t batch) {
  graph::Graph graph = workload::build_model(workload::find_workload(model.workload), batch, model.options);
  return model.smooth ? without_kinks(graph) : graph;
}

inline target::GraphAtBatch serving(const Model& model) {
  return [model](std::int64_t batch) { return build(model, batch); };
}

// By gradient descent, so that the new parameters differ from the old ones by the gradients.
inline target::GraphAtBatch training(const Model& model) {
  return [model](std::int64_t batch) {
    const workload::Workload& workload = workload::find_workload(model.workload);
    return transform::make_training_step(build(model, batch), workload.training.loss,
                                         {.kind = transform::OptimizerKind::sgd});
  };
}

}  // namespace superstep::test
