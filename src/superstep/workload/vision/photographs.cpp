#include "superstep/workload/vision/photographs.h"

#include <algorithm>

#include "superstep/baseline/imaging/image_classes.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"

namespace superstep::workload {
namespace {

double centred(double value) { return (value / 255 - 0.5) * 4; }

// Images that the support vector machines are fitted to at most: they take minutes with more.
constexpr std::int64_t most_fitted_images = 4000;

References gradients(const TableSamples& samples) {
  return image_references(samples.fields.at("image"), samples.fields.at("label"), samples);
}

}  // namespace

References image_references(const Tensor& images, const Tensor& labels, const TableSamples& samples) {
  baseline::LabelledImages labelled{images, {}, 0};
  for (std::int64_t i = 0; i < labels.element_count(); ++i)
    labelled.labels.push_back(static_cast<int>(labels.at(i)));
  labelled.classes = 1 + *std::ranges::max_element(labelled.labels);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(labelled.classes), 0);
  for (std::int64_t i = 0; i < samples.training; ++i) ++counts[static_cast<std::size_t>(labels.at(i))];
  const auto usual = std::ranges::max_element(counts) - counts.begin();
  std::int64_t right = 0;
  for (const std::int64_t index : samples.indices)
    right += static_cast<std::ptrdiff_t>(labels.at(index)) == usual;
  References found{
      .floor = Reference{"the most frequent class",
                         static_cast<double>(right) / static_cast<double>(samples.indices.size())},
      .conventional = {},
      .limit = {},
      .target = {}};
  const auto kinds = std::ranges::count_if(counts, [](std::int64_t count) { return count > 0; });
  if (kinds < 2 || labelled.width() < 16 || labelled.height() < 16) return found;
  found.conventional = Reference{
      "oriented gradients and a linear SVM",
      baseline::gradient_accuracy(labelled, first_samples(std::min(most_fitted_images, samples.training)),
                                  samples.indices, samples.pool)};
  return found;
}

std::unique_ptr<Task> open_photographs(const TaskSettings& settings, const Options& model) {
  const auto size = model.integer("size", 1, 1 << 20), classes = model.integer("classes", 1, 1 << 20);
  return open_table_task(
      {.generator = "resnet50",
       .settings = {"size=" + std::to_string(size),
                    "classes=" + std::to_string(std::min<long long>(classes, 100))},
       .default_samples = std::clamp<std::int64_t>(20000 * 32 * 32 / (size * size), 400, 20000),
       .group = {},
       .inputs = {{"image", centred}},
       .targets = {{"label"}},
       .more = {},
       .labels = "label",
       .classes = classes,
       .classes_option = "classes",
       .quality = accuracy_of_labels,
       .present = present_classes,
       .references = gradients,
       .reference_seconds = 60,
       .reference_fields = {}},
      settings);
}

}  // namespace superstep::workload
