// The classifier's data: labelled images, generated or from a file.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/data/cifar_file.h"
#include "superstep/data/generator.h"
#include "superstep/data/hdf5.h"
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_samples = 12000;
constexpr std::int64_t channels = 3, side = 32, pixels = channels * side * side, classes = 10;
constexpr double training_share = 5.0 / 6.0;  // CIFAR-10's own: 50,000 of 60,000

struct Images {
  std::vector<std::uint8_t> pixels;  // [n, 3, 32, 32]
  std::vector<std::int64_t> labels;
};

void check_labels(const Images& images, const std::string& where) {
  for (std::size_t i = 0; i < images.labels.size(); ++i)
    if (images.labels[i] < 0 || images.labels[i] >= classes)
      throw Error(ErrorCode::bad_file,
                  fmt::format("label {} of image {} is not in [0, {})", images.labels[i], i, classes), where);
}

Images images_of(const Tensor& image, const Tensor& label) {
  const auto bytes = image.as<std::uint8_t>();
  Images images{{bytes.begin(), bytes.end()}, {}};
  for (std::int64_t i = 0; i < label.element_count(); ++i)
    images.labels.push_back(static_cast<std::int64_t>(label.at(i)));
  return images;
}

Images read_binary(const std::filesystem::path& path) {
  const data::CifarFile file = data::read_cifar(path, classes);
  return images_of(file.images, file.labels);
}

Images read_hdf5(const std::filesystem::path& path) {
  const data::Hdf5File file(path);
  const Tensor image =
      file.read("image", ElementType::u8, std::vector<std::int64_t>{-1, channels, side, side});
  const Tensor label = file.read("label", ElementType::i64, std::vector<std::int64_t>{image.shape()[0]});
  Images images = images_of(image, label);
  check_labels(images, path.string());
  return images;
}

Images generate(const TaskSettings& settings) {
  const data::GeneratorEntry& entry = data::find_generator("cifar10-cnn");
  const auto generator = entry.make(Options(entry.options, {}));
  const auto count = static_cast<std::uint64_t>(settings.samples > 0 ? settings.samples : default_samples);
  const auto tensors = data::generate_in_memory(*generator, settings.seed, 0, count, *settings.pool);
  Images images;
  for (std::size_t field = 0; field < generator->fields().size(); ++field) {
    const std::string& name = generator->fields()[field].name;
    if (name == "image") {
      const auto bytes = tensors[field].as<std::uint8_t>();
      images.pixels.assign(bytes.begin(), bytes.end());
    }
    if (name == "label")
      for (std::int64_t i = 0; i < tensors[field].element_count(); ++i)
        images.labels.push_back(static_cast<std::int64_t>(tensors[field].at(i)));
  }
  return images;
}

class CifarTask : public Task {
 public:
  CifarTask(Images images, std::int64_t limit, std::string source)
      : images_(std::move(images)),
        source_(std::move(source)),
        size_(static_cast<std::int64_t>(images_.labels.size())) {
    if (limit > 0) size_ = std::min(size_, limit);
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override {
    return static_cast<std::int64_t>(training_share * static_cast<double>(size_));
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    auto x = tensors[0].as<float>();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::uint8_t* image = images_.pixels.data() + indices[i] * pixels;
      for (std::size_t k = 0; k < pixels; ++k) x[i * pixels + k] = static_cast<float>(image[k]) / 255.0f;
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
    std::int64_t right = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto row = scores.subspan(i * classes, classes);
      const auto best = std::ranges::max_element(row) - row.begin();
      right += best == images_.labels[static_cast<std::size_t>(indices[i])];
    }
    const double accuracy = static_cast<double>(right) / static_cast<double>(indices.size());
    return {{.name = "accuracy", .value = accuracy, .unit = "", .samples = {}}};
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
                             .subspan(static_cast<std::size_t>(found.indices[at] * pixels),
                                      static_cast<std::size_t>(pixels)),
                         side, side);
    };
    present_classification(page, classification);
    return {};
  }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    if (indices.empty() || training_count() < 1) return {};
    const Tensor images = Tensor::from<std::uint8_t>(
        {static_cast<std::int64_t>(images_.labels.size()), channels, side, side}, images_.pixels);
    const Tensor labels =
        Tensor::from<std::int64_t>({static_cast<std::int64_t>(images_.labels.size())}, images_.labels);
    return image_references(images, labels, {{}, training_count(), indices, pool});
  }
  double reference_seconds() const override { return 10; }

  nlohmann::json describe() const override {
    return {{"source", source_}, {"samples", size_}, {"training", training_count()}};
  }

 private:
  Images images_;
  std::string source_;
  std::int64_t size_;
};

}  // namespace

std::unique_ptr<Task> open_cifar10_task(const TaskSettings& settings) {
  if (settings.data.empty())
    return std::make_unique<CifarTask>(generate(settings), 0,
                                       fmt::format("generated, seed {}", settings.seed));
  Images images = settings.data.extension() == ".bin" ? read_binary(settings.data) : read_hdf5(settings.data);
  return std::make_unique<CifarTask>(std::move(images), settings.samples, settings.data.string());
}

}  // namespace superstep::run
