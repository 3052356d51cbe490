// Blocks of text whose every token is told from those before it. How well that can be done is known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/language/next_word.h"
#include "superstep/physics/language/language.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workload/language/causal/causal.h"
#include "superstep/workload/language/word_scores.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

using Tokens = std::span<const std::int32_t>;

constexpr std::int64_t no_label = -100;
constexpr double allowed_over_bound = 1.1;  // a model is good that comes so near the least possible loss
constexpr const char* least_field = "optimal_nats";  // files of others do not have it

Tokens tokens_of(const Tensor& tokens, std::int64_t block) {
  const auto length = static_cast<std::size_t>(tokens.shape()[1]);
  return tokens.as<std::int32_t>().subspan(static_cast<std::size_t>(block) * length, length);
}

// The least loss of some blocks together, nat; none where it is not known.
std::optional<double> least_of(const Fields& fields, std::span<const std::int64_t> indices) {
  const auto field = fields.find(least_field);
  if (field == fields.end()) return std::nullopt;
  double sum = 0;
  for (const std::int64_t block : indices) sum += field->second.at(block);
  return sum;
}

void require_token(std::int32_t token, std::size_t vocabulary) {
  if (token >= 0 && static_cast<std::size_t>(token) < vocabulary) return;
  throw Error(ErrorCode::bad_file,
              fmt::format("token {} is not in the model's vocabulary of {}", token, vocabulary), "tokens",
              "generate the text and build the model with the same --set vocabulary=N");
}

std::vector<Metric> next_words_quality(const Fields& fields, std::span<const std::int64_t> indices,
                                       std::span<const Tensor> outputs) {
  double loss = 0, right = 0, count = 0;
  for (const NextWord& each : next_words_of(fields.at("tokens"), indices, outputs[0])) {
    loss += log_of_sum(each.scores) - each.scores[static_cast<std::size_t>(each.word)];
    right += is_highest(each.scores, each.word);
    ++count;
  }
  count = std::max(1.0, count);
  const std::optional<double> least = least_of(fields, indices);
  std::vector<Metric> metrics{quality_metric("perplexity", std::exp(loss / count))};
  if (least) metrics.push_back(quality_metric("perplexity_bound", std::exp(*least / count)));
  metrics.push_back(quality_metric("token_loss", loss / count, "nat"));
  if (least) metrics.push_back(quality_metric("token_bound", *least / count, "nat"));
  metrics.push_back(quality_metric("token_accuracy", right / count));
  return metrics;
}

// Tokens as often as the training text has them, but one: none is impossible.
class Frequencies {
 public:
  explicit Frequencies(int vocabulary)
      : counts_(static_cast<std::size_t>(vocabulary), 1.0), all_(vocabulary) {}
  void count(Tokens tokens) {
    for (const std::int32_t token : told(tokens)) {
      require_token(token, counts_.size());
      ++counts_[static_cast<std::size_t>(token)], ++all_;
    }
  }
  double loss(Tokens tokens) const {
    double nats = 0;
    for (const std::int32_t token : told(tokens)) {
      require_token(token, counts_.size());
      nats -= std::log(counts_[static_cast<std::size_t>(token)] / all_);
    }
    return nats;
  }

 private:
  // All but the first, and padding.
  static Tokens told(Tokens tokens) {
    const std::size_t end = baseline::used_tokens(tokens);
    return tokens.first(end).subspan(end > 0 ? 1 : 0);
  }
  std::vector<double> counts_;
  double all_;
};

References counts_of_text(const TableSamples& samples, int vocabulary) {
  const Tensor& tokens = samples.fields.at("tokens");
  baseline::TrigramModel trigrams(vocabulary);
  Frequencies frequencies(vocabulary);
  for (std::int64_t block = 0; block < samples.training; ++block) {
    data::throw_if_interrupted();
    frequencies.count(tokens_of(tokens, block));
    trigrams.count(tokens_of(tokens, block));
  }
  double frequent = 0, counted = 0, count = 0;
  for (const std::int64_t block : samples.indices) {
    frequent += frequencies.loss(tokens_of(tokens, block));
    const auto loss = trigrams.loss(tokens_of(tokens, block));
    counted += loss.nats, count += static_cast<double>(loss.tokens);
  }
  if (count == 0) return {};
  References references{.floor = Reference{"the frequency of words", std::exp(frequent / count)},
                        .conventional = Reference{"trigrams (Kneser-Ney)", std::exp(counted / count)}};
  if (const auto least = least_of(samples.fields, samples.indices)) {
    references.limit = Reference{"the grammar's own probabilities", std::exp(*least / count)};
    references.target = std::exp(allowed_over_bound * *least / count);
  }
  return references;
}

}  // namespace

std::vector<NextWord> next_words_of(const Tensor& tokens, std::span<const std::int64_t> indices,
                                    const Tensor& output) {
  const auto places = static_cast<std::size_t>(output.shape()[1]),
             classes = static_cast<std::size_t>(output.shape()[2]);
  const auto scores = output.as<float>();
  std::vector<NextWord> words;
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const Tokens own = tokens_of(tokens, indices[row]);
    const std::size_t used = baseline::used_tokens(own);
    for (std::size_t i = 1; i < used; ++i) {
      require_token(own[i], classes);
      words.push_back({row, static_cast<std::int64_t>(i), own[i],
                       scores.subspan((row * places + i - 1) * classes, classes)});
    }
  }
  return words;
}

std::unique_ptr<Task> open_next_words(const std::string& generator, const TaskSettings& settings,
                                      const Options& model) {
  // The token after each one; padding and the last position have none.
  const auto next = [](const Tensor& tokens, std::int64_t index, std::span<float> row) {
    const Tokens own = tokens_of(tokens, index);
    const std::size_t used = baseline::used_tokens(own);
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<float>(i + 1 < used ? own[i + 1] : no_label);
  };
  // Nothing comes of what a model says of padding; as a token it must be one.
  const auto known = [](double token) { return std::max(token, 0.0); };
  const int vocabulary = static_cast<int>(model.integer("vocabulary", 64, 1000000));
  // Scores are kept for all samples of a validation: few samples where the vocabulary is large.
  const bool large = vocabulary > 8192;
  return open_table_task(
      {.generator = generator,
       .settings = {"length=" + model.text("length"), "vocabulary=" + model.text("vocabulary")},
       .default_samples = large ? 64 : 1000,
       .training_share = large ? 0.75 : 0.9,
       .group = {},
       .inputs = {{.field = "tokens", .convert = known}},
       .targets = {{.field = "tokens", .make = next}},
       .quality = next_words_quality,
       .present = present_next_words,
       .references =
           [vocabulary](const TableSamples& samples) { return counts_of_text(samples, vocabulary); },
       .reference_seconds = 5,
       .reference_fields = {least_field}},
      settings);
}

}  // namespace superstep::workload
