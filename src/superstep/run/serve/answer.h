// Answers to questions by parts of a text, of a trained BERT (bert-base-squad) or of weights that others
// wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/language/answer/windows.h"
#include "superstep/language/tokenizer/tokenizer.h"
#include "superstep/run/serve/length_plans.h"

namespace superstep::run {

struct AnswerSettings {
  std::filesystem::path weights;           // a run's folder, or a file or folder of others' weights
  std::vector<std::string> model_options;  // name=value, of others' weights, over what they say themselves
  std::string precision;                   // empty: that of the run, or f32
  std::string target = "cpu";
  std::int64_t length = 0;            // tokens of a window; 0: the run's, or 384
  std::int64_t stride = 0;            // of the text, from window to window; 0: a third of the length
  std::vector<std::int64_t> lengths;  // of plans below `length`; empty: the usual ones
  int threads = 1;
};

struct TextAnswer {
  std::string text;
  std::size_t begin = 0, end = 0;  // bytes of the context
  double score = 0, share = 0;     // language::Answer
};

struct Answered {
  std::vector<TextAnswer> answers;  // the likeliest first; not one twice
  std::size_t question_tokens = 0, text_tokens = 0, windows = 0;
  std::vector<std::int64_t> lengths;  // of the plans that the windows went through, one each
  double seconds = 0;                 // without the compilation of plans that were used for the first time
};

class Answerer {
 public:
  // The model of what the weights hold. Throws Error (invalid_argument) where the tokenizer has another
  // number of tokens, and what load_weights_for() throws.
  Answerer(AnswerSettings settings, language::Tokenizer tokenizer);

  // Throws Error (invalid_argument) where one of them is empty or no UTF-8, saying which: `name` is what the
  // context is called.
  Answered ask(std::string_view question, std::string_view context, std::size_t most,
               const std::string& name = "the text");

  const TrainSettings& model() const { return model_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  double compile_seconds() const { return plans_->compile_seconds(); }

 private:
  AnswerSettings settings_;
  language::Tokenizer tokenizer_;
  TrainSettings model_;
  std::int64_t vocabulary_ = 0;
  std::unique_ptr<LengthPlans> plans_;
  ThreadPool pool_;
};

// Options of bert-base-squad by the weights of a BERT of Hugging Face: layers, width and vocabulary by its
// arrays, heads by the config.json beside it, or 64 numbers each. Throws Error: bad_file (no BERT's arrays),
// unsupported (config.json says another kind of model, which it names).
std::vector<std::string> options_of_weights(const std::filesystem::path& weights);

}  // namespace superstep::run
