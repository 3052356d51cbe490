// Blocks of a synthetic language with masked words. The mean loss of the best possible answer is known.
#include <cmath>

#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

// -log softmax(scores)[label].
double loss_of(std::span<const float> scores, std::size_t label) {
  const double top = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - top);
  return std::log(sum) + top - static_cast<double>(scores[label]);
}

std::vector<Metric> masked_quality(const Fields& fields, std::span<const std::int64_t> indices,
                                   std::span<const Tensor> outputs) {
  const Tensor &labels = fields.at("labels"), &bound = fields.at("optimal_nats");
  const auto length = static_cast<std::size_t>(labels.shape()[1]);
  const auto scores = outputs[0].as<float>();
  const std::size_t classes = scores.size() / std::max<std::size_t>(1, indices.size() * length);
  double loss = 0, least = 0, right = 0, count = 0;
  for (std::size_t i = 0; i < indices.size() * length; ++i) {
    const auto at =
        indices[i / length] * static_cast<std::int64_t>(length) + static_cast<std::int64_t>(i % length);
    const double label = labels.at(at);
    if (label < 0) continue;
    const auto row = scores.subspan(i * classes, classes);
    loss += loss_of(row, static_cast<std::size_t>(label));
    least += bound.at(at);
    right += std::ranges::max_element(row) - row.begin() == static_cast<std::ptrdiff_t>(label);
    ++count;
  }
  const double scored = std::max(1.0, count);
  return {quality_metric("masked_loss", loss / scored, "nat"),
          quality_metric("masked_bound", least / scored, "nat"),
          quality_metric("masked_accuracy", right / scored)};
}

}  // namespace

std::unique_ptr<Task> open_language_task(const TaskSettings& settings, const Options& model) {
  // Scores are kept for all samples of a validation: few samples where the vocabulary is large.
  const bool large = model.integer("vocabulary", 1, 1 << 30) > 8192;
  return open_table_task(
      {.generator = "distilbert",
       .settings = {"length=" + model.text("length"), "vocabulary=" + model.text("vocabulary")},
       .default_samples = large ? 48 : 2000,
       .training_share = large ? 0.84 : 0.9,
       .group = {},
       .inputs = {{"input_ids"}, {"attention_mask"}},
       .targets = {{"labels"}},
       .more = {"optimal_nats"},
       .quality = masked_quality,
       .present = present_masked_words},
      settings);
}

}  // namespace superstep::run
