#include "superstep/workload/chemistry/uno.h"

#include <fmt/format.h>

#include "superstep/op/move/movement.h"
#include "superstep/workload/layers.h"

namespace superstep::workload {
namespace {

struct Layout {
  std::int64_t width;  // of every hidden layer
  double dropped;      // share of its outputs, in training
};

Var tower(Layers& layers, Var x, const std::string& name, int depth, const Layout& layout) {
  for (int i = 1; i <= depth; ++i) {
    const std::string layer = fmt::format("{}{}", name, i);
    x = layers.dropout(layers.relu(layers.dense(x, layer, layout.width)), layer + ".dropout", layout.dropped);
  }
  return x;
}

graph::Graph build(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const Layout layout{options.integer("width", 1, 16384), options.number("dropout", 0, 0.9)};
  graph::Graph graph("uno");
  Builder b(graph);
  Layers layers(b, seed);
  const Var cell = b.input("cell", ElementType::f32, {batch, 942});
  const Var drug = b.input("drug", ElementType::f32, {batch, 5270});
  const Var both[] = {tower(layers, cell, "cell", 3, layout), tower(layers, drug, "drug", 3, layout)};
  const Var x = tower(layers, op::concat(both, 1), "joint", 5, layout);
  b.output("auc", layers.dense(x, "out", 1));
  graph.set_data(graph.find_value("out.bias"),
                 Tensor::full(ElementType::f32, {1}, options.number("mean", -10, 10)));
  return graph;
}

}  // namespace

Workload uno() {
  return {
      .name = "uno",
      .summary = "response of tumour cells to drugs: a wide perceptron on two tables of features",
      .options = {{"width", "1000", "of every hidden layer"},
                  {"dropout", "0", "share of a hidden layer's outputs that training drops"},
                  {"mean", "0.75", "AUC that training begins at"}},
      .build = build,
      .parameters = 16224001,
      .inputs = {{"cell", ElementType::f32, {942}, "", "gene expression, standardised"},
                 {"drug", ElementType::f32, {5270}, "", "molecular descriptors, standardised"}},
      .outputs = {{"auc", ElementType::f32, {1}, "", "area under the dose response curve"}},
      .targets = {{"target", ElementType::f32, {1}, "", "area under the dose response curve"}},
      // Published: Adamax at 1e-4, batches of 32 over 50 epochs, a tenth dropped in every hidden layer, at
      // inference too. Here Adam, larger batches, more rows in fewer epochs, and nothing dropped: without
      // masks at inference, layers that were trained under them give too little (a relu's mean rises with its
      // noise).
      .training = {.batch = 128,
                   .epochs = 4,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 3e-4,
                   .schedule = Schedule::cosine,
                   .warm_up_share = 0.02},
      .metrics = {{"r2", "", true}, {"mse", ""}, {"mae", ""}},
      // The noise of the measurements allows about 0.8.
      .target = QualityTarget{.metric = "r2", .value = 0.75, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
