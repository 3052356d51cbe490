#include "superstep/workload/vision/cifar10_cnn.h"

#include "superstep/op/move/view.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/layers.h"

namespace superstep::workload {
namespace {

// Two convolutions, the first keeping the size; pooling by two, rounded down; dropout.
Var block(Layers& layers, Var x, const std::string& first, std::int64_t first_channels,
          const std::string& second, const std::string& dropout) {
  Var y = layers.relu(layers.conv(x, first, first_channels, 3, {.pads = {1, 1, 1, 1}}));
  y = layers.relu(layers.conv(y, second, 32, 3));
  y = op::max_pool(y, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  return layers.dropout(y, dropout, 0.25);
}

graph::Graph build(std::int64_t batch, const Options&, std::uint64_t seed) {
  graph::Graph graph("cifar10-cnn");
  Builder b(graph);
  Layers layers(b, seed);
  Var y = b.input("image", ElementType::f32, {batch, 3, 32, 32});
  y = block(layers, y, "conv1", 32, "conv2", "dropout1");
  y = block(layers, y, "conv3", 64, "conv4", "dropout2");
  y = layers.relu(layers.dense(op::flatten(y), "fc1", 512));
  b.output("logits", layers.dense(layers.dropout(y, "dropout3", 0.5), "fc2", 10));
  return graph;
}

}  // namespace

Workload cifar10_cnn() {
  return {
      .name = "cifar10-cnn",
      .summary = "ten classes of 32x32 colour images, by a small convolutional network",
      .options = {},
      .build = build,
      .parameters = 642570,
      .inputs = {{"image", ElementType::f32, {3, 32, 32}, "", "red, green, blue; pixels divided by 255"}},
      .outputs = {{"logits", ElementType::f32, {10}, "", "a score a class; softmax makes probabilities"}},
      .targets = {{"label", ElementType::i64, {}, "", "the number of the class"}},
      .training = {.batch = 64,
                   .epochs = 40,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::cross_entropy,
                                                 .target = "label"}}},
                   .optimizer = {.kind = transform::OptimizerKind::sgd},
                   .learning_rate = 0.016},
      .metrics = {{"accuracy", "", true}},
      .target = QualityTarget{.metric = "accuracy", .value = 0.85, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
