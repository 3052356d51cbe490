// A transformer encoder of text (J. Devlin et al., arXiv 1810.04805): every token becomes a row of numbers
// that has seen the others.
#pragma once

#include <string>
#include <vector>

#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {

struct EncoderSizes {
  std::int64_t layers, width, heads, length, vocabulary;
};

// Of the options layers, width, heads, length and vocabulary, and those with these defaults. Throws Error
// (invalid_argument) where the heads do not divide the width.
EncoderSizes encoder_sizes(const Options& options);
std::vector<OptionSpec> encoder_options(const EncoderSizes& defaults);

class Encoder {
 public:
  static constexpr std::int64_t most_positions = 512;
  static constexpr double norm_epsilon = 1e-12, dropped_share = 0.1;

  Encoder(Layers& layers, const EncoderSizes& sizes) : layers_(layers), b_(layers.builder()), s_(sizes) {}

  // i64 [N, T] each: tokens; of which of two kinds each is, where the model tells them apart; which position
  // each has, where that is not its place.
  struct Tokens {
    Var ids, types = {}, positions = {};
  };
  // [N, T, width]. `hidden` is added to the scores [N, heads, T, T] of attention.
  Var run(const Tokens& tokens, Var hidden);

  // 0 for words and a large negative number for padding, of a mask that is 0 there: [N, 1, 1, T].
  Var hidden_padding(Var mask);
  // The same, and as much for tokens of another number: sequences that are packed into a block do not see
  // each other. [N, 1, T, T].
  Var hidden_others(Var mask);

  // x [N, T, width] scored against the table of embeddings, once the encoder has run: [N, T, vocabulary].
  Var scores(Var x);

 private:
  Var embedded(const Tokens& tokens);
  Var attention(Var x, Var hidden, const std::string& name);
  Var layer(Var x, Var hidden, const std::string& name);

  Layers& layers_;
  Builder& b_;
  EncoderSizes s_;
  Var words_;  // the table of embeddings
};

}  // namespace superstep::workload
