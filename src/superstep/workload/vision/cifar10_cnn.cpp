// The small image classifier of Graphcore's CIFAR-10 example: four convolutions, two dense layers.
//
// image f32 [N, 3, 32, 32], pixels divided by 255 -> logits f32 [N, 10] (softmax is left to the loss).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/file/cifar_file.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/op/move/view.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
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

// --- data: labelled images, generated or from a file

constexpr std::int64_t default_images = 12000;
constexpr std::int64_t cifar_colors = 3, cifar_side = 32, cifar_classes = 10;
constexpr std::int64_t cifar_values = cifar_colors * cifar_side * cifar_side;  // of an image
constexpr double cifar_training_share = 5.0 / 6.0;  // CIFAR-10's own: 50,000 of 60,000

struct CifarImages {
  std::vector<std::uint8_t> pixels;  // [n, 3, 32, 32]
  std::vector<std::int64_t> labels;
};

void check_labels(const CifarImages& images, const std::string& where) {
  for (std::size_t i = 0; i < images.labels.size(); ++i)
    if (images.labels[i] < 0 || images.labels[i] >= cifar_classes)
      throw Error(ErrorCode::bad_file,
                  fmt::format("label {} of image {} is not in [0, {})", images.labels[i], i, cifar_classes),
                  where);
}

CifarImages images_of(const Tensor& image, const Tensor& label) {
  const auto bytes = image.as<std::uint8_t>();
  CifarImages images{{bytes.begin(), bytes.end()}, {}};
  for (std::int64_t i = 0; i < label.element_count(); ++i)
    images.labels.push_back(static_cast<std::int64_t>(label.at(i)));
  return images;
}

CifarImages read_cifar_binary(const std::filesystem::path& path) {
  const data::CifarFile file = data::read_cifar(path, cifar_classes);
  return images_of(file.images, file.labels);
}

CifarImages read_cifar_hdf5(const std::filesystem::path& path) {
  const data::Hdf5File file(path);
  const Tensor image = file.read("image", ElementType::u8,
                                 std::vector<std::int64_t>{-1, cifar_colors, cifar_side, cifar_side});
  const Tensor label = file.read("label", ElementType::i64, std::vector<std::int64_t>{image.shape()[0]});
  CifarImages images = images_of(image, label);
  check_labels(images, path.string());
  return images;
}

CifarImages generated_images(const TaskSettings& settings) {
  const Fields fields = generated_fields(*make_generator("cifar10-cnn"), settings, default_images);
  return images_of(fields.at("image"), fields.at("label"));
}

class CifarTask : public Task {
 public:
  CifarTask(CifarImages images, std::int64_t limit, std::string source)
      : images_(std::move(images)),
        source_(std::move(source)),
        size_(static_cast<std::int64_t>(images_.labels.size())) {
    if (limit > 0) size_ = std::min(size_, limit);
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override {
    return static_cast<std::int64_t>(cifar_training_share * static_cast<double>(size_));
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    auto x = tensors[0].as<float>();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::uint8_t* image = images_.pixels.data() + indices[i] * cifar_values;
      for (std::size_t k = 0; k < cifar_values; ++k)
        x[i * cifar_values + k] = static_cast<float>(image[k]) / 255.0f;
      if (tensors.size() > 1)
        tensors[1].as<std::int64_t>()[i] = images_.labels[static_cast<std::size_t>(indices[i])];
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const auto scores = outputs[0].as<float>();
    double right = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto row = scores.subspan(i * cifar_classes, cifar_classes);
      right += is_highest(row, images_.labels[static_cast<std::size_t>(indices[i])]);
    }
    const double accuracy = right / static_cast<double>(indices.size());
    return {quality_metric("accuracy", accuracy)};
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    Classification classification{.labels = {},
                                  .scores = found.outputs[0].as<float>(),
                                  .samples = {found.indices.begin(), found.indices.end()},
                                  .picture = {}};
    for (const std::int64_t index : found.indices)
      classification.labels.push_back(images_.labels[static_cast<std::size_t>(index)]);
    classification.picture = [&](std::size_t at) {
      return color_image(std::span(images_.pixels)
                             .subspan(static_cast<std::size_t>(found.indices[at] * cifar_values),
                                      static_cast<std::size_t>(cifar_values)),
                         cifar_side, cifar_side);
    };
    present_classification(page, classification);
    return {};
  }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    if (indices.empty() || training_count() < 1) return {};
    const Tensor images = Tensor::from<std::uint8_t>(
        {static_cast<std::int64_t>(images_.labels.size()), cifar_colors, cifar_side, cifar_side},
        images_.pixels);
    const Tensor labels =
        Tensor::from<std::int64_t>({static_cast<std::int64_t>(images_.labels.size())}, images_.labels);
    return image_references(images, labels, {{}, training_count(), indices, pool});
  }
  double reference_seconds() const override { return 10; }

  nlohmann::json describe() const override {
    return {{"source", source_}, {"samples", size_}, {"training", training_count()}};
  }

 private:
  CifarImages images_;
  std::string source_;
  std::int64_t size_;
};

std::unique_ptr<Task> open_cifar10(const TaskSettings& settings, const Options&) {
  if (settings.data.empty())
    return std::make_unique<CifarTask>(generated_images(settings), 0, generated_source(settings));
  CifarImages images =
      data::form_of(settings.data) != data::FileForm::hdf5 && data::ends_in(settings.data, {".bin"})
          ? read_cifar_binary(settings.data)
          : read_cifar_hdf5(settings.data);
  return std::make_unique<CifarTask>(std::move(images), settings.samples, settings.data.string());
}

}  // namespace

Workload cifar10_cnn() {
  return {
      .name = "cifar10-cnn",
      .summary = "ten classes of 32x32 color images, by a small convolutional network",
      .options = {},
      .build = build_cifar10,
      .parameters = 642570,
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
