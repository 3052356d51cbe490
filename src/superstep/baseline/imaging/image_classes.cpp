#include "superstep/baseline/imaging/image_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/imaging/hog.h"
#include "superstep/baseline/linear_svm.h"
#include "superstep/file/check.h"
#include "superstep/file/cifar_file.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

constexpr int most_classes = 100000;  // as the classifiers have it: each takes memory here

LabelledImages read_arrays(const std::filesystem::path& path, std::int64_t most) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1, -1, -1};
  const std::int64_t count = std::min(most, file.require_shape("image", any).shape[0]);
  const std::int64_t one[] = {file.info("image").shape[0]};
  file.require_shape("label", one);
  LabelledImages read{file.read_rows("image", ElementType::u8, 0, count), {}, 0};
  const Tensor labels = file.read_rows("label", ElementType::i32, 0, count);
  data::require_in_range(labels, 0, most_classes - 1, data::place(path, "label"));
  for (const std::int32_t label : labels.as<std::int32_t>()) read.labels.push_back(label);
  return read;
}

LabelledImages read_records(const std::filesystem::path& path, int classes, std::int64_t most) {
  const data::CifarFile file = data::read_cifar(path, classes);
  const std::int64_t count = std::min(most, file.images.shape()[0]);
  LabelledImages read{Tensor(ElementType::u8, {count, 3, 32, 32}), {}, 0};
  std::copy_n(file.images.bytes(), read.images.byte_count(), read.images.bytes());
  for (std::int64_t k = 0; k < count; ++k) read.labels.push_back(static_cast<int>(file.labels.at(k)));
  return read;
}

LabelledImages read_images(const std::filesystem::path& path, int classes, std::int64_t most) {
  LabelledImages read = data::form_of(path) != data::FileForm::hdf5 && data::ends_in(path, {".bin"})
                            ? read_records(path, classes, most)
                            : read_arrays(path, most);
  if (read.count() < 10)
    throw Error(ErrorCode::bad_file, "too few images to fit and to hold some out", path.string());
  read.classes = 1 + *std::ranges::max_element(read.labels);
  return read;
}

// A row an image, made on all threads.
template <class Features>
TreeFeatures rows_of(const LabelledImages& images, std::span<const std::int64_t> which, int length,
                     ThreadPool& pool, Features features) {
  TreeFeatures x(static_cast<Eigen::Index>(which.size()), length);
  pool.parallel_for(x.rows(), [&](std::int64_t k, int) {
    data::throw_if_interrupted();
    const std::vector<float> values = features(images.planes(which[static_cast<std::size_t>(k)]));
    x.row(k) = Eigen::Map<const Eigen::RowVectorXf>(values.data(), length);
  });
  return x;
}

// Mean values of squares of pixels, 0 to 1: at most 16 of them along a side.
class Pixels {
 public:
  explicit Pixels(const LabelledImages& images)
      : width_(images.width()),
        height_(images.height()),
        across_(std::min(16, images.width())),
        down_(std::min(16, images.height())),
        channels_(static_cast<int>(images.images.shape()[1])) {}
  int length() const { return channels_ * across_ * down_; }
  std::vector<float> operator()(std::span<const std::uint8_t> planes) const {
    std::vector<float> means;
    for (int c = 0; c < channels_; ++c)
      for (int row = 0; row < down_; ++row)
        for (int column = 0; column < across_; ++column) means.push_back(mean(planes, c, row, column));
    return means;
  }

 private:
  float mean(std::span<const std::uint8_t> planes, int c, int row, int column) const {
    const int top = row * height_ / down_, bottom = (row + 1) * height_ / down_;
    const int left = column * width_ / across_, right = (column + 1) * width_ / across_;
    int sum = 0;
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x)
        sum += planes[static_cast<std::size_t>((c * height_ + y) * width_ + x)];
    return static_cast<float>(sum) / (255.0f * static_cast<float>((bottom - top) * (right - left)));
  }
  int width_, height_, across_, down_, channels_;
};

struct Accuracy {
  double top1 = 0, top5 = 0;
  std::vector<std::int32_t> predicted;
};

Accuracy judge(const Eigen::MatrixXf& scores, std::span<const int> labels) {
  Accuracy result;
  for (Eigen::Index k = 0; k < scores.rows(); ++k) {
    const int label = labels[static_cast<std::size_t>(k)];
    const float own = scores(k, label);
    const auto better = (scores.row(k).array() > own).count();
    Eigen::Index best = 0;
    scores.row(k).maxCoeff(&best);
    result.predicted.push_back(static_cast<std::int32_t>(best));
    result.top1 += (best == label) / static_cast<double>(scores.rows());
    result.top5 += (better < 5) / static_cast<double>(scores.rows());
  }
  return result;
}

struct Work {
  const LabelledImages& images;
  std::span<const std::int64_t> known, others;  // fitted to; judged
  double cost;
  ThreadPool& pool;
};

std::vector<int> labels_of(const LabelledImages& images, std::span<const std::int64_t> which) {
  std::vector<int> labels;
  for (const std::int64_t k : which) labels.push_back(images.labels[static_cast<std::size_t>(k)]);
  return labels;
}

template <class Features>
Accuracy fit_and_judge(const Work& work, int length, Features features) {
  const auto& [images, known, others, cost, pool] = work;
  const LinearSvm svm = fit_linear_svm(rows_of(images, known, length, pool, features),
                                       labels_of(images, known), images.classes, cost, pool);
  return judge(svm.scores(rows_of(images, others, length, pool, features)), labels_of(images, others));
}

Accuracy judge_gradients(const Work& work, const HogSettings& hog) {
  const int width = work.images.width(), height = work.images.height();
  return fit_and_judge(work, hog_length(width, height, hog),
                       [&](const auto& planes) { return hog_features(planes, width, height, hog); });
}

// Eight pixels, or more where an image has so many that there would be more than sixteen cells along a side.
int usual_cell(const LabelledImages& images) {
  return std::max(8, (std::min(images.width(), images.height()) + 15) / 16);
}

std::vector<std::int64_t> numbers_from(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(last - first));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void write_predictions(const std::filesystem::path& path, const Accuracy& result, std::int64_t first) {
  data::Hdf5Writer file(path);
  file.write("label_pred", Tensor::from<std::int32_t>({static_cast<std::int64_t>(result.predicted.size())},
                                                      result.predicted));
  file.set_attribute("label_pred", "first_image", first);
  file.close();
}

Report run_with(const Request& request, const Options& options, int classes) {
  const LabelledImages images = read_images(request.input, classes, options.integer("images", 10, 100000000));
  const int cell = static_cast<int>(options.integer("cell", 0, 256));
  const HogSettings hog{cell > 0 ? cell : usual_cell(images),
                        static_cast<int>(options.integer("orientations", 2, 64))};
  const std::int64_t middle = images.count() * 4 / 5;
  const auto known = numbers_from(0, middle), others = numbers_from(middle, images.count());
  const Work work{images, known, others, options.number("cost", 1e-9, 1e9), *request.pool};
  const Stopwatch watch;
  const Accuracy found = judge_gradients(work, hog);
  const double fit_time = watch.seconds();
  const Pixels pixels(images);
  const Accuracy floor = fit_and_judge(work, pixels.length(), pixels);
  if (!request.output.empty()) write_predictions(request.output, found, middle);
  Report report;
  TextTable table({"method", "fitted to", "judged on", "top-1", "top-5"});
  const auto add = [&](const std::string& method, const std::string& prefix, const Accuracy& result) {
    report.metrics.push_back({prefix + "accuracy", result.top1, ""});
    report.metrics.push_back({prefix + "accuracy_top5", result.top5, ""});
    table.add_row({method, format_count(static_cast<double>(middle)),
                   format_count(static_cast<double>(images.count() - middle)),
                   fmt::format("{:.4f}", result.top1), fmt::format("{:.4f}", result.top5)});
  };
  add("linear SVM on pixels", "floor_", floor);
  add("linear SVM on oriented gradients", "", found);
  report.metrics.push_back({"fit_time", fit_time, "s"});
  report.text = table.to_string();
  return report;
}

std::vector<OptionSpec> options_with(const char* images) {
  return {{"images", images, "the first so many images of the file; four fifths of them are fitted to"},
          {"cell", "0", "px along a side of a cell; 0: 8, or a sixteenth of a larger image"},
          {"orientations", "9", "bins over half a turn"},
          {"cost", "1", "of a misclassified image against wide margins"}};
}

constexpr const char* summary = "histograms of oriented gradients and linear support vector machines";

Entry photographs(const char* name) {
  return {name, summary, options_with("10000"),
          [](const Request& request, const Options& options) { return run_with(request, options, 100); }};
}

}  // namespace

double gradient_accuracy(const LabelledImages& images, std::span<const std::int64_t> known,
                         std::span<const std::int64_t> others, ThreadPool& pool) {
  return judge_gradients({images, known, others, 1, pool}, {.cell = usual_cell(images)}).top1;
}

Entry cifar10_classifier() {
  return {"cifar10-cnn", summary, options_with("10000"),
          [](const Request& request, const Options& options) { return run_with(request, options, 10); }};
}

Entry resnet50_classifier() { return photographs("resnet50"); }
Entry efficientnet_b0_classifier() { return photographs("efficientnet-b0"); }
Entry efficientnet_b4_classifier() { return photographs("efficientnet-b4"); }
Entry mobilenet_v3_small_classifier() { return photographs("mobilenet-v3-small"); }
Entry mobilenet_v3_large_classifier() { return photographs("mobilenet-v3-large"); }
Entry vit_base_classifier() { return photographs("vit-base"); }
Entry resnext101_classifier() { return photographs("resnext101"); }

}  // namespace superstep::baseline
