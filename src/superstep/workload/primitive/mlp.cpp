#include "superstep/workload/primitive/mlp.h"

#include <fmt/format.h>

#include "superstep/workload/layers.h"

namespace superstep::workload {
namespace {

graph::Graph build(std::int64_t batch, const Options&, std::uint64_t seed) {
  graph::Graph graph("mlp");
  Builder b(graph);
  Layers layers(b, seed);
  Var y = b.input("x", ElementType::f32, {batch, 16});
  for (int i = 1; i <= 3; ++i) y = layers.relu(layers.dense(y, fmt::format("fc{}", i), 64));
  b.output("y", layers.dense(y, "fc4", 1));
  return graph;
}

}  // namespace

Workload mlp() {
  return {
      .name = "mlp",
      .summary = "a tiny perceptron, 16-64-64-64-1: the overhead of a step",
      .options = {},
      .build = build,
      .parameters = 9473,
      .inputs = {{"x", ElementType::f32, {16}, "", "features"}},
      .outputs = {{"y", ElementType::f32, {1}, "", "a number"}},
      .targets = {{"target", ElementType::f32, {1}, "", "a number"}},
      .training = {.batch = 64,
                   .epochs = 60,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 3e-3,
                   .schedule = Schedule::cosine},
      .metrics = {{"rmse", ""}},
      // About what ridge regression reaches with squares and products.
      .target = QualityTarget{.metric = "rmse", .value = 0.1},
  };
}

}  // namespace superstep::workload
