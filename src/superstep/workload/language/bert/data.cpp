// Blocks of a synthetic language with masked words. The mean loss of the best possible answer is known.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/baseline/language/masked_ngram.h"
#include "superstep/physics/language/language.h"
#include "superstep/physics/language/pair_generator.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/language/bert/encoder.h"
#include "superstep/workload/language/word_scores.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

using Tokens = std::span<const std::int32_t>;

constexpr double allowed_over_bound = 1.1;  // a model is good that comes so near the least possible loss

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
  const std::vector<ScoredWord> words = scored_words(labels, indices, outputs[0]);
  double loss = 0, least = 0, right = 0;
  for (const ScoredWord& each : words) {
    loss += log_of_sum(each.scores) - each.scores[static_cast<std::size_t>(each.word)];
    least += bound.at(indices[each.row] * labels.shape()[1] + each.place);
    right += is_highest(each.scores, each.word);
  }
  const double scored = std::max(1.0, static_cast<double>(words.size()));
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

// Of each block the first `most` hidden words.
References neighbor_counts(const TableSamples& samples, int vocabulary, std::int64_t most) {
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
    std::int64_t judged = 0;
    for (std::size_t i = 1; i + 1 < own.size() && judged < most; ++i) {
      if (own[i] < 0) continue;
      ++judged;
      require_token(own[i], counts.size());
      frequent += frequency_loss(counts, words, own[i]);
      neighbors += baseline::neighbor_loss(model, channel, there, i, own[i]);
      bound += least.at(block * labels.shape()[1] + static_cast<std::int64_t>(i));
      ++scored;
    }
  }
  if (scored == 0) return {};
  return {.floor = Reference{"the frequency of words", frequent / scored},
          .conventional = Reference{"counts of neighbors (Kneser-Ney)", neighbors / scored},
          .limit = Reference{"the grammar's posterior", bound / scored},
          .target = allowed_over_bound * bound / scored};
}

// What is alike where words are hidden; the text has `words` of them at most.
TableSpec masked_text(const char* generator, const Options& model, std::int64_t most) {
  // Scores are kept for all samples of a validation: few samples where the vocabulary is large.
  const int vocabulary = static_cast<int>(model.integer("vocabulary", 1, 1 << 30));
  const bool large = vocabulary > 8192;
  return {
      .generator = generator,
      .settings = {"length=" + model.text("length"), "vocabulary=" + model.text("vocabulary")},
      .default_samples = large ? 48 : 2000,
      .training_share = large ? 0.84 : 0.9,
      .group = {},
      .inputs = {{"input_ids"}, {"attention_mask"}},
      .targets = {{"labels"}},
      .more = {"optimal_nats"},
      .quality = masked_quality,
      .present = present_masked_words,
      .references = [vocabulary, most](
                        const TableSamples& samples) { return neighbor_counts(samples, vocabulary, most); },
      .reference_seconds = 5,
      .reference_fields = {"tokens"}};
}

// --- pairs of paragraphs

void fill_places(const Tensor& labels, std::int64_t block, std::span<float> row, bool words) {
  const auto own = tokens_of(labels, block);
  std::size_t at = 0;
  for (std::size_t i = 0; i < own.size() && at < row.size(); ++i)
    if (own[i] >= 0) row[at++] = words ? static_cast<float>(own[i]) : static_cast<float>(i);
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(at), row.end(),
            words ? static_cast<float>(data::not_scored) : 0.0f);
}

// Whether both paragraphs of a pair have as many sentences, which is all that tells whether one follows the
// other.
bool equal_counts(Tokens tokens, Tokens mask, Tokens types, std::int32_t pair) {
  std::array<int, 2> sentences{};
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (mask[i] == pair && tokens[i] == data::token::stop) ++sentences[types[i] != 0 ? 1 : 0];
  return sentences[0] == sentences[1];
}

std::vector<Metric> pairs_quality(const Fields& fields, std::span<const std::int64_t> indices,
                                  std::span<const Tensor> outputs) {
  std::vector<Metric> metrics = masked_quality(fields, indices, outputs);
  const Tensor &labels = fields.at("next_labels"), &tokens = fields.at("tokens"),
               &mask = fields.at("attention_mask"), &types = fields.at("token_type_ids");
  const auto scores = outputs[1].as<float>();
  const std::int64_t pairs = labels.shape()[1];
  double right = 0, best = 0, count = 0;
  for (std::size_t row = 0; row < indices.size(); ++row)
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const auto label = static_cast<std::int64_t>(labels.at(indices[row] * pairs + pair));
      if (label < 0) continue;
      const std::size_t at = 2 * (row * static_cast<std::size_t>(pairs) + static_cast<std::size_t>(pair));
      right += is_highest(scores.subspan(at, 2), label == data::does_not_follow ? 1 : 0);
      best += equal_counts(tokens_of(tokens, indices[row]), tokens_of(mask, indices[row]),
                           tokens_of(types, indices[row]),
                           static_cast<std::int32_t>(pair) + 1) == (label == data::follows);
      ++count;
    }
  metrics.push_back(quality_metric("next_accuracy", right / std::max(1.0, count)));
  metrics.push_back(quality_metric("next_bound", best / std::max(1.0, count)));
  return metrics;
}

}  // namespace

std::vector<ScoredWord> scored_words(const Tensor& labels, std::span<const std::int64_t> indices,
                                     const Tensor& output) {
  const auto rows = static_cast<std::size_t>(output.shape()[1]),
             classes = static_cast<std::size_t>(output.shape()[2]);
  const auto scores = output.as<float>();
  std::vector<ScoredWord> words;
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const Tokens own = tokens_of(labels, indices[row]);
    std::size_t found = 0;
    for (std::size_t place = 0; place < own.size() && found < rows; ++place) {
      if (own[place] < 0) continue;
      require_token(own[place], classes);
      const std::size_t at = row * rows + (rows == own.size() ? place : found);
      words.push_back(
          {row, static_cast<std::int64_t>(place), own[place], scores.subspan(at * classes, classes)});
      ++found;
    }
  }
  return words;
}

std::unique_ptr<Task> open_masked_words(const TaskSettings& settings, const Options& model) {
  return open_table_task(masked_text("distilbert", model, Encoder::most_positions), settings);
}

std::unique_ptr<Task> open_paragraph_pairs(const TaskSettings& settings, const Options& model) {
  TableSpec spec = masked_text("bert-large", model, masked_places(model.integer("length", 4, 512)));
  spec.settings.push_back("sequences=" + model.text("sequences"));
  const auto places = [](bool words) {
    return [words](const Tensor& labels, std::int64_t block, std::span<float> row) {
      fill_places(labels, block, row, words);
    };
  };
  spec.inputs.push_back({"token_type_ids"});
  spec.inputs.push_back({.field = "labels", .make = places(false)});
  if (model.integer("sequences", 1, 64) > 1) {
    spec.inputs.push_back({"position_ids"});
    spec.inputs.push_back({"first_positions"});
  }
  spec.targets = {{.field = "labels", .make = places(true)}, {"next_labels"}};
  spec.more.push_back("tokens");
  spec.reference_fields = {};
  spec.quality = pairs_quality;
  return open_table_task(std::move(spec), settings);
}

}  // namespace superstep::workload
