// Blocks of a synthetic language with masked words. The mean loss of the best possible answer is known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/language/masked_ngram.h"
#include "superstep/physics/language/language.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

using Tokens = std::span<const std::int32_t>;

constexpr double allowed_over_bound = 1.1;  // a model is good that comes so near the least possible loss

// -log softmax(scores)[label].
double loss_of(std::span<const float> scores, std::size_t label) {
  const double top = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - top);
  return std::log(sum) + top - static_cast<double>(scores[label]);
}

// A file may be of a larger vocabulary than the model.
void require_token(double token, std::size_t vocabulary) {
  if (!(token < static_cast<double>(vocabulary)))
    throw Error(ErrorCode::bad_file,
                fmt::format("token {} is not in the model's vocabulary of {}", token, vocabulary), "labels",
                "generate the text and build the model with the same --set vocabulary=N");
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
    require_token(label, classes);
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

Tokens tokens_of(const Tensor& field, std::int64_t block) {
  const auto length = static_cast<std::size_t>(field.shape()[1]);
  return field.as<std::int32_t>().subspan(static_cast<std::size_t>(block) * length, length);
}

// Words as often as the training text has them, but one: no word is impossible.
double frequency_loss(std::span<const double> counts, double words, std::int32_t label) {
  return -std::log((counts[static_cast<std::size_t>(label)] + 1) /
                   (words + static_cast<double>(counts.size())));
}

References neighbor_counts(const TableSamples& samples, int vocabulary) {
  const Tensor &tokens = samples.fields.at("tokens"), &seen = samples.fields.at("input_ids"),
               &labels = samples.fields.at("labels"), &least = samples.fields.at("optimal_nats");
  baseline::NeighborModel model(vocabulary);
  std::vector<double> counts(static_cast<std::size_t>(vocabulary), 0);
  double words = 0;
  for (std::int64_t block = 0; block < samples.training; ++block) {
    data::throw_if_interrupted();
    baseline::count_neighbors(model, tokens_of(tokens, block), tokens_of(seen, block));
    for (const std::int32_t token : tokens_of(tokens, block))
      if (token >= data::token::first_word) {
        require_token(token, counts.size());
        ++counts[static_cast<std::size_t>(token)], ++words;
      }
  }
  data::MaskingChannel channel;
  channel.first_word = data::token::first_word;
  channel.words = vocabulary - data::token::first_word;
  double frequent = 0, neighbors = 0, bound = 0, scored = 0;
  for (const std::int64_t block : samples.indices) {
    const Tokens own = tokens_of(labels, block), there = tokens_of(seen, block);
    for (std::size_t i = 1; i + 1 < own.size(); ++i) {
      if (own[i] < 0) continue;
      require_token(own[i], counts.size());
      frequent += frequency_loss(counts, words, own[i]);
      neighbors += baseline::neighbor_loss(model, channel, there, i, own[i]);
      bound += least.at(block * labels.shape()[1] + static_cast<std::int64_t>(i));
      ++scored;
    }
  }
  if (scored == 0) return {};
  return {.floor = Reference{"the frequency of words", frequent / scored},
          .conventional = Reference{"counts of neighbours (Kneser-Ney)", neighbors / scored},
          .limit = Reference{"the grammar's posterior", bound / scored},
          .target = allowed_over_bound * bound / scored};
}

}  // namespace

std::unique_ptr<Task> open_masked_words(const TaskSettings& settings, const Options& model) {
  // Scores are kept for all samples of a validation: few samples where the vocabulary is large.
  const int vocabulary = static_cast<int>(model.integer("vocabulary", 1, 1 << 30));
  const bool large = vocabulary > 8192;
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
       .present = present_masked_words,
       .references =
           [vocabulary](const TableSamples& samples) { return neighbor_counts(samples, vocabulary); },
       .reference_seconds = 5,
       .reference_fields = {"tokens"}},
      settings);
}

}  // namespace superstep::workload
