// Generated pictures of textured shapes in 100 classes, for the classifiers of photographs.
#include <algorithm>

#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

double centred(double value) { return (value / 255 - 0.5) * 4; }

}  // namespace

std::unique_ptr<Task> open_classifier_task(const TaskSettings& settings, const Options& model) {
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
       .quality = accuracy_of_labels,
       .present = present_classes},
      settings);
}

}  // namespace superstep::run
