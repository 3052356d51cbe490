// superstep answer RUN --context FILE --question TEXT: where in a text the answer to a question stands.
#include "superstep/run/serve/answer.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/options.h"
#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/language/language.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/published_weights.h"

namespace superstep::cli {
namespace {

struct Arguments {
  run::AnswerSettings settings;
  std::string run, weights, vocabulary, context, lengths;
  std::vector<std::string> questions;
  std::int64_t best = 1;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep answer bert/ --context page.txt --question \"What turns in the beam?\"\n"
    "  superstep answer --weights model.safetensors --vocab vocab.txt --context page.txt --question \"Who?\" "
    "--best 5\n"
    "  superstep answer run/ --context \"the dog sees the cat .\" --question \"who sees the cat\"    a run "
    "of "
    "train bert-base-squad\n"
    "Weights are those of a BertForQuestionAnswering as Hugging Face saves it. A text that is longer than "
    "the\n"
    "model reads at once is read in windows that overlap. Scores are shares of all parts of the text: what "
    "a\n"
    "model that has not learnt to answer says has one, too.";

struct Context {
  std::string text, name;
};

// A file of this name, else the text itself; what looks like the name of a file is no text.
Context context_of(const std::string& given) {
  const bool spaced = given.find_first_of(" \n\t") != std::string::npos;
  std::error_code code;
  if (std::filesystem::is_regular_file(given, code)) return {read_text_file(given), given};
  if (!spaced && (given.find('/') != std::string::npos || given.ends_with(".txt")))
    throw Error(ErrorCode::not_found, "there is no such file", given,
                "--context takes a file, or the text itself");
  return {given, "--context"};
}

std::string weights_of(const Arguments& a) {
  if (a.run.empty() != a.weights.empty()) return a.run + a.weights;
  throw Error(ErrorCode::invalid_argument,
              a.run.empty() ? "there is no model to ask" : "there are two models", "answer",
              "name the folder of a run or of weights, or give --weights FILE");
}

// The words that a generated data set holds beside its blocks: rows of letters, zeros behind them.
std::string words_of_file(const std::filesystem::path& path) {
  const std::int64_t any[] = {-1, -1};
  const Tensor rows = data::Hdf5File(path).read("vocabulary", ElementType::u8, any);
  const auto letters = rows.as<std::uint8_t>();
  const auto width = static_cast<std::size_t>(rows.shape()[1]);
  std::string lines;
  for (std::size_t at = 0; at < letters.size(); at += width) {
    for (std::size_t i = at; i < at + width && letters[i] != 0; ++i) lines += static_cast<char>(letters[i]);
    lines += '\n';
  }
  return lines;
}

// What a run learnt to read: the words of its file, or of the language that was generated for it.
language::Tokenizer tokenizer_of_run(const std::filesystem::path& folder) {
  const run::TrainSettings settings = run::load_weights(folder).settings;
  if (!settings.data.empty()) {
    try {
      return language::Tokenizer::from_vocabulary(words_of_file(settings.data), {}, settings.data.string());
    } catch (const Error& error) {
      throw Error(error.code(), "the words that the run learnt from are not known: " + error.message(),
                  error.where(), "give their vocab.txt: --vocab FILE");
    }
  }
  const run::Model model(settings);
  const Options options(model.workload().options, model.settings().model_options);
  const data::Language language({.vocabulary = static_cast<int>(options.integer("vocabulary", 1, 1 << 30))});
  std::string lines;
  for (int i = 0; i < language.vocabulary(); ++i) lines += language.surface(i) + "\n";
  return language::Tokenizer::from_vocabulary(lines, {}, folder.string());
}

language::Tokenizer tokenizer_of(const std::string& weights, const std::string& vocabulary) {
  if (!vocabulary.empty()) return language::Tokenizer::from_file(vocabulary);
  if (!run::is_published_weights(weights)) return tokenizer_of_run(weights);
  const data::WeightFile file = data::WeightFile::open(weights);
  try {
    return language::Tokenizer::beside(file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    throw Error(
        error.code(), error.message(), error.where(),
        "put the vocab.txt or tokenizer.json that the weights came with beside them, or name it: --vocab "
        "FILE");
  }
}

nlohmann::json as_json(const run::TextAnswer& answer) {
  return {{"text", answer.text},
          {"score", answer.share},
          {"logits", answer.score},
          {"begin", answer.begin},
          {"end", answer.end}};
}

void show(const run::Answered& answered, std::int64_t best) {
  if (best == 1) {
    fmt::print("{}\n", printable(answered.answers[0].text));
  } else {
    TextTable table({"score", "bytes", "answer"});
    for (const run::TextAnswer& each : answered.answers)
      table.add_row({fmt::format("{:.4f}", each.share), fmt::format("{}-{}", each.begin, each.end),
                     printable(each.text)});
    fmt::print("{}", table.to_string());
  }
  std::fflush(stdout);
  std::map<std::int64_t, int> lengths;
  for (const std::int64_t length : answered.lengths) ++lengths[length];
  std::vector<std::string> words;
  for (const auto& [length, count] : lengths) words.push_back(fmt::format("{} of {}", count, length));
  const run::TextAnswer& first = answered.answers[0];
  say("superstep: score {:.4f}, bytes {} to {}; {} tokens of text behind {} of the question in windows: "
      "{}; {}\n",
      first.share, first.begin, first.end, format_count(static_cast<double>(answered.text_tokens)),
      answered.question_tokens, join(words, ", "), format_seconds(answered.seconds));
}

void answer(const Arguments& given) {
  Arguments a = given;
  const std::string weights = weights_of(a);
  if (a.questions.empty())
    throw Error(ErrorCode::invalid_argument, "there is no question", weights, "give --question TEXT");
  if (a.context.empty())
    throw Error(ErrorCode::invalid_argument, "there is no text to look in", "--context",
                "give a file, or the text itself");
  a.settings.weights = weights;
  a.settings.threads = thread_count();
  if (!a.lengths.empty()) a.settings.lengths = run::lengths_from_text(a.lengths);
  const Context context = context_of(a.context);
  run::Answerer answerer(a.settings, tokenizer_of(weights, a.vocabulary));
  nlohmann::json questions = nlohmann::json::array();
  std::vector<double> seconds;
  double windows = 0;
  for (const std::string& question : a.questions) {
    const run::Answered answered =
        answerer.ask(question, context.text, static_cast<std::size_t>(a.best), context.name);
    if (!common().quiet) show(answered, a.best);
    nlohmann::json answers = nlohmann::json::array();
    for (const run::TextAnswer& each : answered.answers) answers.push_back(as_json(each));
    questions.push_back({{"question", question}, {"answers", answers}, {"windows", answered.lengths}});
    seconds.push_back(answered.seconds);
    windows += static_cast<double>(answered.windows);
  }
  double sum = 0;
  for (const double each : seconds) sum += each;
  std::vector<Metric> metrics{
      {.name = "answer_time",
       .value = sum / static_cast<double>(seconds.size()),
       .unit = "s",
       .samples = seconds},
      {.name = "windows", .value = windows, .unit = "", .samples = {}},
      {.name = "compile_time", .value = answerer.compile_seconds(), .unit = "s", .samples = {}}};
  record::Result result = command_result("answer", "bert-base-squad",
                                         {{"weights", weights},
                                          {"threads", a.settings.threads},
                                          {"precision", answerer.model().precision},
                                          {"model_options", answerer.model().model_options}},
                                         metrics, a.settings.target);
  result.mode = "infer";
  result.details = {{"questions", questions}};
  write_result(std::move(result));
}

void declare_model(CLI::App& command, Arguments& a) {
  command.add_option("RUN", a.run,
                     "folder of a trained bert-base-squad, or of weights with config.json and a vocabulary");
  command
      .add_option("--weights", a.weights,
                  "weights that others wrote, in the place of RUN: safetensors, PyTorch's archive")
      ->type_name("PATH");
  command
      .add_option(
          "--vocab", a.vocabulary,
          "vocab.txt or tokenizer.json, if not beside the weights (tokenizer_config.json there keeps case)")
      ->type_name("FILE");
  add_set_option(command, a.settings.model_options);
  command.add_option("--precision", a.settings.precision, "f32, bf16 or f16 (default: that of the training)")
      ->type_name("TYPE");
  command.add_option("--on", a.settings.target, "where to run: superstep list targets")
      ->type_name("TARGET")
      ->capture_default_str();
}

}  // namespace

void declare_answer(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  declare_model(command, *a);
  command.add_option("--context", a->context, "the text in which the answer stands: a UTF-8 file, or itself")
      ->type_name("FILE|TEXT");
  add_repeated(command, "--question", a->questions, "what to ask; may be repeated", "TEXT");
  command.add_option("--best", a->best, "how many answers to show, the likeliest first")
      ->type_name("N")
      ->check(whole_number_from(1, 1000))
      ->capture_default_str();
  command
      .add_option(
          "--length", a->settings.length,
          "tokens that the model reads at once, question included (default: those of the training, or "
          "384)")
      ->type_name("N")
      ->check(whole_number_from(8, 512));
  command
      .add_option("--stride", a->settings.stride,
                  "tokens of the text from one window to the next (default: a third of the length)")
      ->type_name("N")
      ->check(whole_number_from(1, 512));
  command
      .add_option("--lengths", a->lengths,
                  "shorter plans: a window goes through the shortest that holds it (default: 64,128,256,384)")
      ->type_name("N,...");
  command.footer(examples);
  command.callback([a] { answer(*a); });
}

}  // namespace superstep::cli
