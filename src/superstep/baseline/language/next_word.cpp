#include "superstep/baseline/language/next_word.h"

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
#include "superstep/physics/language/text_generator.h"

namespace superstep::baseline {
namespace {

using Tokens = std::span<const std::int32_t>;

// The token before the last one of the first position is none.
std::int32_t before_last(Tokens tokens, std::size_t i) { return i >= 2 ? tokens[i - 2] : data::token::pad; }

struct Text {
  Tensor tokens;
  data::LanguageSettings settings;
  Tokens block(std::int64_t number) const {
    const auto length = static_cast<std::size_t>(tokens.shape()[1]);
    return tokens.as<std::int32_t>().subspan(static_cast<std::size_t>(number) * length, length);
  }
};

Text read_text(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const auto attributes = file.attributes();
  const auto found = attributes.find("parameters");
  const auto* parameters = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  Text text;
  try {
    text.settings = data::language_settings(parse_json(parameters ? *parameters : ""));
  } catch (const Error& error) {
    throw error.in(path.string());
  }
  const std::int64_t any[] = {-1, -1};
  text.tokens = file.read("tokens", ElementType::i32, any);
  for (const std::int32_t each : text.tokens.as<std::int32_t>())
    if (each < 0 || each >= text.settings.vocabulary)
      throw Error(ErrorCode::bad_file, fmt::format("data set 'tokens' holds {}, which is no token", each),
                  path.string());
  return text;
}

void write_losses(const std::filesystem::path& path, double counted, double exact) {
  data::CsvWriter file(path, {"method", "nats"});
  file.cell("trigrams").cell(counted);
  file.end_row();
  file.cell("grammar").cell(exact);
  file.end_row();
  file.close();
}

Report run(const Request& request, const Options&) {
  const Text text = read_text(request.input);
  const data::Language language(text.settings);
  const data::BlockEntropy entropy(language, static_cast<int>(text.tokens.shape()[1]));
  TrigramModel model(language.vocabulary());
  const auto held_out = [](std::int64_t block) { return is_held_out(std::to_string(block), 5); };
  const std::int64_t blocks = text.tokens.shape()[0];
  for (std::int64_t block = 0; block < blocks; ++block)
    if (!held_out(block)) model.count(text.block(block));
  double counted = 0, exact = 0, tokens = 0;
  const Stopwatch watch;
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (!held_out(block)) continue;
    const TrigramModel::Loss loss = model.loss(text.block(block));
    const double least = entropy.nats(text.block(block));
    if (!std::isfinite(least))
      throw Error(ErrorCode::bad_file, fmt::format("block {} is no text of the grammar", block),
                  request.input.string());
    counted += loss.nats, exact += least, tokens += static_cast<double>(loss.tokens);
  }
  const double seconds = watch.seconds();
  if (tokens == 0)
    throw Error(ErrorCode::bad_file, "there are no tokens to score in the part held out",
                request.input.string(), "generate more samples");
  counted /= tokens, exact /= tokens;
  if (!request.output.empty()) write_losses(request.output, counted, exact);
  Report report;
  report.metrics = {{"perplexity", std::exp(exact), ""},
                    {"floor_perplexity", std::exp(counted), ""},
                    {"loss", exact, "nat"},
                    {"throughput", tokens / seconds, "samples/s"}};
  TextTable table({"method", "loss nat", "perplexity"});
  table.add_row(
      {"trigrams (Kneser-Ney)", fmt::format("{:.4f}", counted), fmt::format("{:.2f}", std::exp(counted))});
  table.add_row({"the grammar itself", fmt::format("{:.4f}", exact), fmt::format("{:.2f}", std::exp(exact))});
  report.text = table.to_string();
  return report;
}

Entry entry_named(const char* name) {
  return {
      name, "probabilities of the grammar itself (least loss); trigrams by Kneser and Ney (floor)", {}, run};
}

}  // namespace

std::size_t used_tokens(Tokens tokens) {
  const auto negative = std::ranges::find_if(tokens, [](std::int32_t token) { return token < 0; });
  if (negative != tokens.end()) return static_cast<std::size_t>(negative - tokens.begin());
  std::size_t count = tokens.size();
  while (count > 0 && tokens[count - 1] == data::token::pad) --count;
  return count;
}

void TrigramModel::count(Tokens tokens) {
  const std::size_t end = used_tokens(tokens);
  for (std::size_t i = 1; i < end; ++i) {
    const std::int32_t first = before_last(tokens, i), second = tokens[i - 1], word = tokens[i];
    if (!triple_.count(token_key(first, second), token_key(first, second, word))) continue;
    if (pair_.count(token_key(second), token_key(second, word))) single_.count(0, token_key(word));
  }
}

double TrigramModel::probability(std::int32_t first, std::int32_t second, std::int32_t word) const {
  const double any = single_.mix(0, token_key(word), 1.0 / vocabulary_);
  const double pair = pair_.mix(token_key(second), token_key(second, word), any);
  return triple_.mix(token_key(first, second), token_key(first, second, word), pair);
}

TrigramModel::Loss TrigramModel::loss(Tokens tokens) const {
  Loss loss;
  const std::size_t end = used_tokens(tokens);
  for (std::size_t i = 1; i < end; ++i, ++loss.tokens)
    loss.nats -= std::log(probability(before_last(tokens, i), tokens[i - 1], tokens[i]));
  return loss;
}

Entry gpt2_baseline() { return entry_named("gpt2"); }
Entry llama_baseline() { return entry_named("llama"); }

}  // namespace superstep::baseline
