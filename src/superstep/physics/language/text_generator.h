// Blocks of text for models that predict the next token (workloads gpt2 and llama): whole sentences of a
// grammar, and for each block the least loss that its tokens can have together, exactly.
#pragma once

#include <span>
#include <vector>

#include "superstep/physics/generator.h"
#include "superstep/physics/language/language_generator.h"

namespace superstep::data {

GeneratorEntry gpt2_generator();
GeneratorEntry llama_generator();

// [CLS], then sentences with a full stop each while the next one fits, then [SEP]: what a block begins with.
// Of a first sentence that fits into no block another is drawn. Adds the log of the sentences' probabilities.
std::vector<std::int32_t> draw_block(const Language& language, int length, RandomStream& random,
                                     double& log_probability);

// -log of the probability that draw_block() makes just this block. By the chain rule it is the sum of what
// the tokens after the first cost whoever knows the grammar: no model has a lower expected loss.
class BlockEntropy {
 public:
  BlockEntropy(const Language& language, int length);
  // Infinite for what is no such block. Padding behind the block is left out.
  double nats(std::span<const std::int32_t> tokens) const;

 private:
  double shorter_than(std::size_t words) const;  // the probability of at most so many words

  const Language& language_;
  int length_;
  std::vector<double> at_most_;  // cumulative, up to the longest sentence
};

}  // namespace superstep::data
