// superstep complete MODEL --prompt TEXT: a language model continues a text.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/language/decode/decoder.h"
#include "superstep/language/decode/sampling.h"
#include "superstep/language/tokenizer/tokenizer.h"

namespace superstep::cli {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Arguments {
  std::string model, prompt, prompt_file, tokens;
  std::int64_t most = 128, context = 0;
  language::SamplingSettings sampling;
  bool ignore_ends = false, exact = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep complete llama/ --prompt \"Once upon a time\"       a folder as Hugging Face's\n"
    "  superstep complete model.gguf --prompt-file question.txt --temperature 0.8 --top-p 0.95 --seed 3\n"
    "  superstep complete llama/ --tokens 1,306,4658 --most 20      without a tokenizer\n"
    "MODEL is a GGUF file, or weights with config.json and tokenizer.json beside them. The text goes to the\n"
    "standard output as it is made, what it took to the standard error.";

Tokens numbers_of(const std::string& list) {
  Tokens tokens;
  for (const std::string& part : split(list, ',')) {
    std::int32_t token = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), token);
    if (error != std::errc() || end != part.data() + part.size())
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no number of a token", part), "--tokens",
                  "give whole numbers with commas between them");
    tokens.push_back(token);
  }
  return tokens;
}

void check_prompt(const Arguments& a) {
  const int given = !a.prompt.empty() + !a.prompt_file.empty() + !a.tokens.empty();
  if (given == 1) return;
  throw Error(ErrorCode::invalid_argument,
              given == 0 ? "there is no text to go on from" : "there are two beginnings", a.model,
              "give one of --prompt, --prompt-file and --tokens");
}

// Prints whole characters: a token may end in the middle of one.
class Stream {
 public:
  explicit Stream(bool quiet) : quiet_(quiet) {}
  void add(const std::string& bytes) {
    text_ += bytes;
    held_ += bytes;
    const std::size_t bad = language::first_bad_byte(held_);
    // At most three bytes of a character may be there without its last one.
    std::size_t whole = bad == std::string::npos || held_.size() - bad > 3 ? held_.size() : bad;
    print(held_.substr(0, whole));
    held_.erase(0, whole);
  }
  void finish() {
    print(held_ + "\n");
    held_.clear();
  }
  const std::string& text() const { return text_; }

 private:
  void print(const std::string& part) const {
    if (quiet_ || part.empty()) return;
    fmt::print("{}", part);
    std::fflush(stdout);
  }
  bool quiet_;
  std::string text_, held_;
};

struct Completed {
  Tokens prompt, tokens;
  std::string text;
  double prefill_seconds = 0;
  std::vector<double> seconds;  // of each token after the first
  const char* why = "as many tokens as were asked for";
};

class Completion {
 public:
  explicit Completion(const Arguments& a)
      : a_(a),
        file_(data::WeightFile::open(a.model)),
        decoder_(file_, language::model_config(file_),
                 {.threads = thread_count(), .context = a.context, .exact = a.exact}),
        sampler_(a.sampling) {
    if (a.tokens.empty()) tokenizer_.emplace(language::Tokenizer::beside(file_));
    if (tokenizer_ && tokenizer_->size() > decoder_.vocabulary())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the tokenizer has {} tokens and the model {}", tokenizer_->size(),
                              decoder_.vocabulary()),
                  a.model, "the tokenizer is another model's");
  }

  Completed run() {
    Completed done{.prompt = prompt(), .tokens = {}, .text = {}, .seconds = {}};
    if (done.prompt.empty())
      throw Error(ErrorCode::invalid_argument, "the prompt is empty", a_.model, "begin the text with a word");
    Stream stream(common().quiet);
    Stopwatch watch;
    std::span<const float> scores = decoder_.feed(done.prompt);
    done.prefill_seconds = watch.seconds();
    // One more token than there is room for can be told, but nothing after it.
    const std::int64_t most = std::min(a_.most, decoder_.context() - decoder_.position() + 1);
    while (static_cast<std::int64_t>(done.tokens.size()) < a_.most) {
      const std::int32_t token = sampler_.next(scores);
      if (!a_.ignore_ends && is_end(token)) {
        done.why = "the model ended it";
        break;
      }
      done.tokens.push_back(token);
      stream.add(text_of(token, done.tokens.size()));
      if (static_cast<std::int64_t>(done.tokens.size()) == most) {
        if (most < a_.most) done.why = "the context is full";
        break;
      }
      if (interrupted()) {
        done.why = "it was stopped";
        break;
      }
      watch = Stopwatch();
      scores = decoder_.feed({&done.tokens.back(), 1});
      done.seconds.push_back(watch.seconds());
    }
    stream.finish();
    done.text = stream.text();
    return done;
  }

  const language::Decoder& decoder() const { return decoder_; }
  const data::WeightFile& file() const { return file_; }

 private:
  Tokens prompt() const {
    if (!a_.tokens.empty()) return numbers_of(a_.tokens);
    try {
      return tokenizer_->encode(a_.prompt.empty() ? read_text_file(a_.prompt_file) : a_.prompt);
    } catch (const Error& error) {
      throw error.where().empty() && !a_.prompt_file.empty() ? error.in(a_.prompt_file) : error;
    }
  }
  bool is_end(std::int32_t token) const {
    const auto& ends = decoder_.config().ends;
    return std::ranges::find(ends, token) != ends.end();
  }
  std::string text_of(std::int32_t token, std::size_t count) const {
    return tokenizer_ ? tokenizer_->bytes_of(token) : fmt::format("{}{}", count > 1 ? "," : "", token);
  }

  const Arguments& a_;
  data::WeightFile file_;
  language::Decoder decoder_;
  std::optional<language::Tokenizer> tokenizer_;
  language::Sampler sampler_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::vector<Metric> metrics_of(const Completed& done, const language::Decoder& decoder) {
  std::vector<Metric> metrics;
  const auto add = [&](const char* name, double value, const char* unit) {
    metrics.push_back({.name = name, .value = value, .unit = unit, .samples = {}});
  };
  add("prefill_tokens", static_cast<double>(done.prompt.size()), "");
  add("prefill_throughput", static_cast<double>(done.prompt.size()) / done.prefill_seconds, "tokens/s");
  add("prefill_rate",
      2 * decoder.multiply_adds() * static_cast<double>(done.prompt.size()) / done.prefill_seconds, "FLOP/s");
  add("decode_tokens", static_cast<double>(done.tokens.size()), "");
  add("weight_bytes", static_cast<double>(decoder.weight_bytes()), "B");
  add("cache_bytes", static_cast<double>(decoder.cache_bytes()), "B");
  if (done.seconds.empty()) return metrics;
  const double token = median(done.seconds);
  add("decode_throughput", 1 / token, "tokens/s");
  add("decode_latency", token, "s");
  metrics.back().samples = done.seconds;
  add("weight_rate", static_cast<double>(decoder.weight_bytes()) / token, "B/s");
  return metrics;
}

double value_of(const std::vector<Metric>& metrics, std::string_view name) {
  return std::ranges::find(metrics, name, &Metric::name)->value;
}

void tell(const Completed& done, const std::vector<Metric>& metrics) {
  const auto count = [](std::size_t n) { return format_count(static_cast<double>(n)); };
  say("superstep: {} tokens of the prompt in {}: {:.4g} tokens/s, {}\n", count(done.prompt.size()),
      format_seconds(done.prefill_seconds), value_of(metrics, "prefill_throughput"),
      format_si(value_of(metrics, "prefill_rate"), "FLOP/s"));
  say("superstep: {} tokens after it: {}", count(done.tokens.size()), done.why);
  if (!done.seconds.empty())
    say("; {:.4g} tokens/s, {} of weights for each: {}", value_of(metrics, "decode_throughput"),
        format_bytes(value_of(metrics, "weight_bytes")), format_si(value_of(metrics, "weight_rate"), "B/s"));
  say("\n");
}

void complete(const Arguments& arguments) {
  check_prompt(arguments);
  Completion completion(arguments);
  const Completed done = completion.run();
  const std::vector<Metric> metrics = metrics_of(done, completion.decoder());
  if (!common().quiet) tell(done, metrics);
  record::Result result = command_result("complete", arguments.model,
                                         {{"format", completion.file().format()},
                                          {"threads", thread_count()},
                                          {"temperature", arguments.sampling.temperature},
                                          {"top_k", arguments.sampling.top_k},
                                          {"top_p", arguments.sampling.top_p},
                                          {"seed", arguments.sampling.seed}},
                                         metrics);
  result.mode = "infer";
  // Whatever was made, as JSON takes it.
  const std::size_t bad = language::first_bad_byte(done.text);
  result.details = {{"prompt_tokens", done.prompt},
                    {"tokens", done.tokens},
                    {"text", bad == std::string::npos ? done.text : done.text.substr(0, bad)},
                    {"ended", done.why}};
  write_result(std::move(result));
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while a text was continued");
}

void declare_sampling(CLI::App& command, Arguments& a) {
  command
      .add_option("--temperature", a.sampling.temperature,
                  "0: always the likeliest token; 1: by the model's own odds")
      ->type_name("X")
      ->check(not_negative())
      ->capture_default_str();
  command.add_option("--top-k", a.sampling.top_k, "draw among so many of the likeliest tokens; 0: among all")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
  command
      .add_option("--top-p", a.sampling.top_p,
                  "draw among the fewest likeliest tokens whose odds add to this share")
      ->type_name("SHARE")
      ->check(number_from(0, 1))
      ->capture_default_str();
  command.add_option("--seed", a.sampling.seed, "seed of what is drawn: the same seed, the same text")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
}

}  // namespace

void declare_complete(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command
      .add_option("MODEL", a->model, "a GGUF file, or weights with their config.json, or the folder of these")
      ->required();
  command.add_option("--prompt", a->prompt, "the text to go on from")->type_name("TEXT");
  command.add_option("--prompt-file", a->prompt_file, "a file with it, UTF-8")->type_name("FILE");
  command
      .add_option("--tokens", a->tokens,
                  "numbers of tokens in its place: 1,306,4658; tokens come out as numbers")
      ->type_name("N,...");
  command.add_option("--most", a->most, "tokens to add at most")
      ->type_name("N")
      ->check(whole_number_from(1))
      ->capture_default_str();
  command.add_option("--context", a->context, "tokens that the text may have in all (default: the model's)")
      ->type_name("N")
      ->check(whole_number_from(1));
  command.add_flag("--ignore-end", a->ignore_ends, "go on behind the token that ends a text");
  command.add_flag("--exact", a->exact,
                   "keep activations in f32 instead of rounding them to bytes or bf16; slower");
  declare_sampling(command, *a);
  command.footer(examples);
  command.callback([a, &command] {
    refuse_given(command,
                 a->sampling.temperature > 0
                     ? ""
                     : "is of words that are drawn, and --temperature 0 takes the likeliest",
                 {"--top-k", "--top-p", "--seed"});
    complete(*a);
  });
}

}  // namespace superstep::cli
