#include "superstep/run/serve/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/options.h"
#include "superstep/base/printable.h"
#include "superstep/base/stopwatch.h"
#include "superstep/file/weights/names.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/published_weights.h"

namespace superstep::run {
namespace {

constexpr const char* workload_name = "bert-base-squad";
constexpr std::int64_t usual_length = 384, most_length = 512;  // as the authors' program has them
constexpr std::int64_t padded_rows = 64;  // tables of embeddings are filled up to a multiple of it

// The windows of one question as samples of a model.
class WindowTask final : public Task {
 public:
  explicit WindowTask(std::span<const language::Window> windows) : windows_(windows) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(windows_.size()); }
  std::int64_t training_count() const override { return 0; }
  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const language::Window& window = windows_[static_cast<std::size_t>(indices[row])];
      const auto length = static_cast<std::size_t>(tensors[0].shape()[1]);
      for (std::size_t i = 0; i < length; ++i) {
        const bool used = i < window.tokens.size();
        const std::int64_t values[] = {used ? window.tokens[i] : 0, used, used && i >= window.text};
        for (std::size_t k = 0; k < std::size(values); ++k)
          tensors[k].as<std::int64_t>()[row * length + i] = values[k];
      }
    }
  }
  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }
  std::vector<Metric> quality(std::span<const std::int64_t>, std::span<const Tensor>) const override {
    return {};
  }
  std::int64_t used_length(std::int64_t index) const override {
    return static_cast<std::int64_t>(windows_[static_cast<std::size_t>(index)].tokens.size());
  }
  bool has_labels() const override { return false; }
  nlohmann::json describe() const override { return {{"windows", windows_.size()}}; }

 private:
  std::span<const language::Window> windows_;
};

// "encoder.layer.0." and on, as many as there are.
std::int64_t layers_of(const data::NamedWeights& named) {
  std::int64_t layers = 0;
  while (named.find(fmt::format("encoder.layer.{}.attention.self.query.weight", layers))) ++layers;
  return layers;
}

std::int64_t heads_of(const std::filesystem::path& config, std::int64_t width) {
  constexpr std::int64_t usual_head = 64;  // of all of BERT's sizes
  if (!std::filesystem::exists(config)) return std::max<std::int64_t>(1, width / usual_head);
  const auto said = parse_json(read_text_file(config));
  if (!said.is_object()) throw Error(ErrorCode::bad_file, "this is no JSON object", config.string());
  const auto kind = said.find("model_type");
  if (kind != said.end() && kind->is_string() && *kind != "bert")
    throw Error(ErrorCode::unsupported,
                fmt::format("questions are not answered by models of the kind '{}'",
                            printable(kind->get<std::string>())),
                config.string(), "give weights of a BertForQuestionAnswering");
  const auto heads = said.find("num_attention_heads");
  if (heads == said.end() || !heads->is_number_integer())
    throw Error(ErrorCode::bad_file, "it has no whole number num_attention_heads", config.string());
  return heads->get<std::int64_t>();
}

void set_option(TrainSettings& model, const char* name, std::int64_t value) {
  std::erase_if(model.model_options,
                [&](const std::string& each) { return each.starts_with(std::string(name) + "="); });
  model.model_options.push_back(fmt::format("{}={}", name, value));
}

TrainSettings described(const AnswerSettings& settings) {
  TrainSettings model{.workload = workload_name, .model_options = {}};
  if (!is_published_weights(settings.weights)) {
    if (!settings.model_options.empty())
      throw Error(ErrorCode::invalid_argument, "the model of a run is built as it was trained", "--set",
                  "leave it away, or give weights that are no run's");
    return model;
  }
  model.model_options = options_of_weights(settings.weights);
  set_option(model, "length", usual_length);
  model.model_options.insert(model.model_options.end(), settings.model_options.begin(),
                             settings.model_options.end());
  return model;
}

void require_vocabulary(const language::Tokenizer& tokenizer, std::int64_t vocabulary,
                        const std::filesystem::path& weights) {
  const std::int64_t tokens = tokenizer.size();
  if (tokens <= vocabulary && vocabulary - tokens < padded_rows) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the vocabulary has {} tokens and the model {}", tokens, vocabulary),
              weights.string(), "--vocab takes the vocab.txt or tokenizer.json that the weights came with");
}

std::vector<language::Tokenizer::Place> places_in(const language::Tokenizer& tokenizer, std::string_view text,
                                                  const std::string& name) {
  try {
    std::vector<language::Tokenizer::Place> places = tokenizer.places_of(text);
    if (!places.empty()) return places;
  } catch (const Error& error) {
    throw error.in(name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no word in it", name);
}

std::vector<std::int32_t> tokens_of(std::span<const language::Tokenizer::Place> places) {
  std::vector<std::int32_t> tokens;
  for (const auto& place : places) tokens.push_back(place.token);
  return tokens;
}

// Parts of the text in words: pieces of one word have its bytes, so that several may say the same.
std::vector<TextAnswer> in_words(std::span<const language::Answer> answers,
                                 std::span<const language::Tokenizer::Place> places, std::string_view context,
                                 std::size_t most) {
  std::vector<TextAnswer> said;
  for (const language::Answer& each : answers) {
    const std::size_t begin = places[each.first].begin, end = places[each.last].end;
    const auto same = [&](const TextAnswer& other) { return other.begin == begin && other.end == end; };
    if (said.size() == most) break;
    if (std::ranges::none_of(said, same))
      said.push_back({std::string(context.substr(begin, end - begin)), begin, end, each.score, each.share});
  }
  return said;
}

}  // namespace

std::vector<std::string> options_of_weights(const std::filesystem::path& weights) {
  const data::WeightFile file = data::WeightFile::open(weights);
  const data::NamedWeights named(file);
  const data::Weight* words = named.find("embeddings.word_embeddings.weight");
  const std::int64_t layers = layers_of(named);
  const std::filesystem::path config = file.path().parent_path() / "config.json";
  if (!words || words->shape.rank() != 2 || layers == 0) {
    heads_of(config, 1);  // says which kind of model it is, where that is known
    throw Error(ErrorCode::bad_file, "these are no weights of a BERT: no embeddings.word_embeddings.weight",
                weights.string(), "give weights of a BertForQuestionAnswering");
  }
  const std::int64_t width = words->shape[1];
  return {fmt::format("layers={}", layers), fmt::format("width={}", width),
          fmt::format("heads={}", heads_of(config, width)), fmt::format("vocabulary={}", words->shape[0])};
}

Answerer::Answerer(AnswerSettings settings, language::Tokenizer tokenizer)
    : settings_(std::move(settings)), tokenizer_(std::move(tokenizer)), pool_(settings_.threads) {
  Weights weights = load_weights_for(described(settings_), settings_.weights);
  model_ = weights.settings;
  if (!settings_.precision.empty()) model_.precision = settings_.precision;
  if (settings_.length > 0) set_option(model_, "length", settings_.length);
  const Model model(model_);
  const Options options(model.workload().options, model.settings().model_options);
  settings_.length = options.integer("length", 4, most_length);
  if (settings_.stride == 0) settings_.stride = std::max<std::int64_t>(1, settings_.length / 3);
  vocabulary_ = options.integer("vocabulary", 1, 1 << 30);
  require_vocabulary(tokenizer_, vocabulary_, settings_.weights);
  const target::Target& target = target::find_target(settings_.target);
  plans_ = std::make_unique<LengthPlans>(
      LengthPlans::Settings{.model = model_,
                            .lengths = settings_.lengths,
                            .compile = {.batch = 1, .threads = settings_.threads},
                            .target = &target});
  plans_->set_parameters(weights.states, weights.where);
}

Answered Answerer::ask(std::string_view question, std::string_view context, std::size_t most,
                       const std::string& name) {
  const Stopwatch watch;
  const double compiled_before = plans_->compile_seconds();
  const auto asked = places_in(tokenizer_, question, "the question"),
             places = places_in(tokenizer_, context, name);
  const std::vector<language::Window> windows =
      language::windows_of(tokens_of(asked), tokens_of(places),
                           {.first_token = tokenizer_.first_token(),
                            .separator = tokenizer_.separator(),
                            .length = static_cast<std::size_t>(settings_.length),
                            .stride = static_cast<std::size_t>(settings_.stride)});
  const WindowTask task(windows);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < task.size(); ++i) indices.push_back(i);
  const std::vector<Tensor> outputs = plans_->predict(task, indices, pool_);
  std::vector<language::WindowScores> scores;
  Answered answered;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto row = [&](const Tensor& output) {
      const auto length = static_cast<std::size_t>(settings_.length);
      return output.as<float>().subspan(i * length, length);
    };
    scores.push_back({row(outputs[0]), row(outputs[1])});
    answered.lengths.push_back(plans_->length_for(task.used_length(static_cast<std::int64_t>(i))));
  }
  // Pieces of a word say the same: more are looked at than are wanted.
  constexpr std::size_t pieces = 16;
  answered.answers = in_words(language::best_answers(windows, scores, most * pieces), places, context, most);
  answered.question_tokens = asked.size(), answered.text_tokens = places.size();
  answered.windows = windows.size();
  answered.seconds = watch.seconds() - (plans_->compile_seconds() - compiled_before);
  return answered;
}

}  // namespace superstep::run
