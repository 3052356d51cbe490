// A model that continues text, run token by token from the weights where their file lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/language/decode/cache.h"
#include "superstep/language/decode/matrix.h"
#include "superstep/language/decode/products.h"
#include "superstep/language/model_config.h"

namespace superstep::language {

struct DecoderSettings {
  int threads = 1;
  std::int64_t context = 0;  // tokens of a text, at most the model's own; 0: that
  // Weights in blocks are multiplied by activations in f32, and those in bf16 for several tokens, too:
  // slower, without the rounding of activations to bytes (of single tokens; of 16 and more where
  // byte_panels.h suits the processor), to bf16 (of 16 tokens and more where pair_panels.h does), or to 16
  // bits where there are matrix registers.
  bool exact = false;
};

class Decoder {
 public:
  // Weights as the file has them: nothing is copied but products that it holds the other way round, and what
  // an archive packs. Throws Error: what data::WeightFile and model_config throw; bad_file that lists every
  // array that is missing or of another shape.
  Decoder(const data::WeightFile& file, const ModelConfig& config, const DecoderSettings& settings);
  ~Decoder();

  const ModelConfig& config() const;
  std::int64_t vocabulary() const;
  std::int64_t context() const;      // tokens that a text may have
  std::int64_t position() const;     // tokens so far
  std::size_t weight_bytes() const;  // that a token reads
  double multiply_adds() const;      // of a token, attention left out
  std::size_t cache_bytes() const;

  // The text goes on by these tokens. Gives the scores of what may follow the last one, which are valid until
  // the next call. Throws Error (invalid_argument) where a token is not in the vocabulary, or the text would
  // be longer than the context: nothing has changed then; interrupted.
  std::span<const float> feed(std::span<const std::int32_t> tokens);
  // Goes back to the first `position` tokens.
  void rewind(std::int64_t position);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace superstep::language
