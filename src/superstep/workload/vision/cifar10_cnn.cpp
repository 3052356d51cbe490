// The small image classifier of Graphcore's CIFAR-10 example: four convolutions, two dense layers.
//
// image f32 [N, 3, 32, 32], pixels divided by 255 -> logits f32 [N, 10] (softmax is left to the loss).
#include "superstep/file/cifar_file.h"
#include "superstep/file/form.h"
#include "superstep/op/move/view.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"
#include "superstep/workload/vision/photographs.h"

namespace superstep::workload {
namespace {

// Two convolutions, the first keeping the size; pooling by two, rounded down; dropout.
Var conv_block(Layers& layers, Var x, const std::string& first, std::int64_t first_channels,
               const std::string& second, const std::string& dropout) {
  Var y = layers.relu(layers.conv(x, first, first_channels, 3, {.pads = {1, 1, 1, 1}}));
  y = layers.relu(layers.conv(y, second, 32, 3));
  y = op::max_pool(y, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  return layers.dropout(y, dropout, 0.25);
}

graph::Graph build_cifar10(std::int64_t batch, const Options&, std::uint64_t seed) {
  graph::Graph graph("cifar10-cnn");
  Builder b(graph);
  Layers layers(b, seed);
  Var y = b.input("image", ElementType::f32, {batch, 3, 32, 32});
  y = conv_block(layers, y, "conv1", 32, "conv2", "dropout1");
  y = conv_block(layers, y, "conv3", 64, "conv4", "dropout2");
  y = layers.relu(layers.dense(op::flatten(y), "fc1", 512));
  b.output("logits", layers.dense(layers.dropout(y, "dropout3", 0.5), "fc2", 10));
  return graph;
}

// --- data: labelled images, generated or from files

constexpr std::int64_t default_images = 12000;
constexpr int cifar_classes = 10;
constexpr double cifar_training_share = 5.0 / 6.0;  // CIFAR-10's own: 50,000 of 60,000

double share_of_white(double value) { return value / 255; }

References gradients(const TableSamples& samples) {
  return image_references(samples.fields.at("image"), samples.fields.at("label"), samples);
}

std::unique_ptr<Task> open_cifar10(const TaskSettings& settings, const Options&) {
  TableSpec spec{.generator = "cifar10-cnn",
                 .settings = {},
                 .default_samples = default_images,
                 .training_share = cifar_training_share,
                 .group = {},
                 .inputs = {{"image", share_of_white}},
                 .targets = {{"label"}},
                 .more = {},
                 .labels = "label",
                 .classes = cifar_classes,
                 .quality = accuracy_of_labels,
                 .present = present_classes,
                 .references = gradients,
                 .reference_seconds = 10,
                 .reference_fields = {}};
  // The collection's own binary files.
  if (!data::ends_in(settings.data, {".bin"}) || data::form_of(settings.data) == data::FileForm::hdf5)
    return open_table_task(std::move(spec), settings);
  const data::CifarFile file = data::read_cifar(settings.data, cifar_classes);
  return open_table_task(std::move(spec), Fields{{"image", file.images}, {"label", file.labels}}, settings);
}

}  // namespace

Workload cifar10_cnn() {
  return {
      .name = "cifar10-cnn",
      .summary = "ten classes of 32x32 color images, by a small convolutional network",
      .options = {},
      .build = build_cifar10,
      .parameters = 642570,
      .flops = 34278634,
      .inputs = {{"image", ElementType::f32, {3, 32, 32}, "", "red, green, blue; pixels divided by 255"}},
      .outputs = {{"logits", ElementType::f32, {10}, "", "a score a class; softmax makes probabilities"}},
      .targets = {{"label", ElementType::i64, {}, "", "the number of the class"}},
      .training = {.batch = 64,
                   .epochs = 10,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::cross_entropy,
                                                 .target = "label"}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3},
      .published =
          Recipe{
              .batch = 64,
              .epochs = 40,
              .loss = {{transform::LossTerm{.kind = transform::LossKind::cross_entropy, .target = "label"}}},
              .optimizer = {.kind = transform::OptimizerKind::sgd},
              .learning_rate = 0.016,
              .source = "the CIFAR-10 example of Graphcore"},
      .by_default = RecipeName::quick,
      .open = open_cifar10,
      .metrics = {{"accuracy", "", true}},
      .target = QualityTarget{.metric = "accuracy", .value = 0.85, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
