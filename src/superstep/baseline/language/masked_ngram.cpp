#include "superstep/baseline/language/masked_ngram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/language/language_generator.h"

namespace superstep::baseline {
namespace {

struct MaskedText {
  Tensor tokens, input_ids, labels;
  std::int64_t blocks = 0, length = 0;
  data::LanguageSettings settings;
  std::span<const std::int32_t> row(const Tensor& tensor, std::int64_t block) const {
    return tensor.as<std::int32_t>().subspan(static_cast<std::size_t>(block * length),
                                             static_cast<std::size_t>(length));
  }
};

void require_tokens(const Tensor& tensor, const char* name, int vocabulary, const std::string& where) {
  for (const std::int32_t each : tensor.as<std::int32_t>())
    if ((each < 0 || each >= vocabulary) && each != data::not_scored)
      throw Error(ErrorCode::bad_file, fmt::format("data set '{}' holds {}, which is no token", name, each),
                  where);
}

MaskedText read_text(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const auto attributes = file.attributes();
  const auto found = attributes.find("parameters");
  const auto* parameters = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  MaskedText text;
  try {
    text.settings = data::language_settings(parse_json(parameters ? *parameters : ""));
  } catch (const Error& error) {
    throw error.in(path.string());
  }
  const std::int64_t any[] = {-1, -1};
  text.tokens = file.read("tokens", ElementType::i32, any);
  text.blocks = text.tokens.shape()[0];
  text.length = text.tokens.shape()[1];
  const std::int64_t same[] = {text.blocks, text.length};
  text.input_ids = file.read("input_ids", ElementType::i32, same);
  text.labels = file.read("labels", ElementType::i32, same);
  require_tokens(text.tokens, "tokens", text.settings.vocabulary, path.string());
  require_tokens(text.input_ids, "input_ids", text.settings.vocabulary, path.string());
  require_tokens(text.labels, "labels", text.settings.vocabulary, path.string());
  return text;
}

struct Losses {
  double neighbors = 0, exact = 0;
  std::int64_t positions = 0;
};

void add_losses(Losses& sum, const NeighborModel& model, const data::Language& language,
                const MaskedText& text, std::int64_t block) {
  const auto seen = text.row(text.input_ids, block), labels = text.row(text.labels, block);
  const std::vector<float> exact = data::optimal_nats(language, text.row(text.tokens, block), seen, labels);
  for (std::size_t i = 1; i + 1 < seen.size(); ++i) {
    if (labels[i] == data::not_scored) continue;
    sum.neighbors += neighbor_loss(model, data::masking_of(language), seen, i, labels[i]);
    if (!std::isfinite(exact[i]))
      throw Error(ErrorCode::bad_file, fmt::format("block {} is no text of the grammar", block));
    sum.exact += exact[i];
    ++sum.positions;
  }
}

void write_losses(const std::filesystem::path& path, const Losses& losses) {
  data::CsvWriter file(path, {"method", "nats"});
  file.cell("neighbours").cell(losses.neighbors);
  file.end_row();
  file.cell("grammar").cell(losses.exact);
  file.end_row();
  file.close();
}

Report run(const Request& request, const Options&) {
  const MaskedText text = read_text(request.input);
  const data::Language language(text.settings);
  NeighborModel model(language.vocabulary());
  const auto held_out = [](std::int64_t block) { return is_held_out(std::to_string(block), 5); };
  for (std::int64_t block = 0; block < text.blocks; ++block)
    if (!held_out(block))
      count_neighbors(model, text.row(text.tokens, block), text.row(text.input_ids, block));
  Losses losses;
  const Stopwatch watch;
  for (std::int64_t block = 0; block < text.blocks; ++block) try {
      if (held_out(block)) add_losses(losses, model, language, text, block);
    } catch (const Error& error) {
      throw error.in(request.input.string());
    }
  const double seconds = watch.seconds();
  if (losses.positions == 0)
    throw Error(ErrorCode::bad_file, "there are no hidden words to score in the part held out",
                request.input.string(), "generate more samples");
  const auto count = static_cast<double>(losses.positions);
  losses.neighbors /= count;
  losses.exact /= count;
  if (!request.output.empty()) write_losses(request.output, losses);
  const double uniform = std::log(language.vocabulary());
  Report report;
  report.metrics = {{"loss", losses.exact, "nat"},
                    {"floor_loss", losses.neighbors, "nat"},
                    {"uniform_loss", uniform, "nat"},
                    {"throughput", count / seconds, "samples/s"}};
  TextTable table({"method", "loss nat"});
  table.add_row({"every token alike", fmt::format("{:.4f}", uniform)});
  table.add_row({"counts of neighbors (Kneser-Ney)", fmt::format("{:.4f}", losses.neighbors)});
  table.add_row({"exact posterior of the grammar", fmt::format("{:.4f}", losses.exact)});
  report.text = table.to_string();
  return report;
}

Entry entry_named(const char* name) {
  return {name,
          "exact posterior of the grammar (least loss); counts of neighbors by Kneser and Ney (floor)",
          {},
          run};
}

}  // namespace

void NeighborModel::count(std::int32_t left, std::int32_t word, std::int32_t right) {
  if (!both_.count(token_key(left, right), token_key(left, word, right))) return;
  const bool new_left = left_.count(token_key(left), token_key(left, word));
  const bool new_right = right_.count(token_key(right), token_key(word, right));
  if (new_left) single_.count(0, token_key(word));
  if (new_right) single_.count(0, token_key(word));
}

double NeighborModel::probability(std::int32_t left, std::int32_t word, std::int32_t right) const {
  const double any = single_.mix(0, token_key(word), 1.0 / vocabulary_);
  const double one = (left_.mix(token_key(left), token_key(left, word), any) +
                      right_.mix(token_key(right), token_key(word, right), any)) /
                     2;
  return both_.mix(token_key(left, right), token_key(left, word, right), one);
}

void count_neighbors(NeighborModel& model, Tokens tokens, Tokens seen) {
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i)
    if (tokens[i] >= data::token::first_word) model.count(seen[i - 1], tokens[i], seen[i + 1]);
}

double neighbor_loss(const NeighborModel& model, const data::MaskingChannel& channel, Tokens seen,
                     std::size_t at, std::int32_t truth) {
  const double right = model.probability(seen[at - 1], truth, seen[at + 1]);
  if (seen[at] == data::token::mask) return -std::log(right);
  const double kept = 1 - channel.masked - channel.garbled, garbled = channel.garbled / channel.words;
  const double seen_here = model.probability(seen[at - 1], seen[at], seen[at + 1]);
  return -std::log(right * (garbled + (seen[at] == truth ? kept : 0)) / (garbled + kept * seen_here));
}

Entry bert_small_baseline() { return entry_named("bert-small"); }
Entry distilbert_baseline() { return entry_named("distilbert"); }
Entry bert_large_baseline() { return entry_named("bert-large"); }

}  // namespace superstep::baseline
