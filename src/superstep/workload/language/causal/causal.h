// The parts of the models that continue text, which their files share.
#pragma once

#include <memory>
#include <string>

#include "superstep/base/function_ref.h"
#include "superstep/workload/attention.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/task.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {

// input_ids [batch, length] -> logits [batch, length, vocabulary], by what `decoder` makes of the tokens.
graph::Graph next_words_graph(const char* name, std::int64_t batch, std::int64_t length, std::uint64_t seed,
                              FunctionRef<Var(Layers& layers, Var ids)> decoder);

// The workload with the ports, the data (blocks of a synthetic language: every token predicts the next one),
// the metrics and the recipe (cross entropy of the next tokens, by AdamW) of such a model; length and
// vocabulary as by default.
Workload by_next_words(Workload workload, std::int64_t length, std::int64_t vocabulary);

// softmax(q k' / sqrt(head size)) v, in which no position sees a later one. q [N, heads, T, size], k and v
// [N, key heads, T, size], each shared by as many heads -> [N, T, heads * size].
Var causal_attention(Layers& layers, Var q, Var k, Var v, const std::string& name, double dropped);

// Blocks of text by the generator of this name, or of a file that has the field "tokens" alone.
std::unique_ptr<Task> open_next_words(const std::string& generator, const TaskSettings& settings,
                                      const Options& model);

// A token that is to be told, and what a model says of it.
struct NextWord {
  std::size_t row = 0;     // of the predictions
  std::int64_t place = 0;  // in its block
  std::int64_t word = 0;
  std::span<const float> scores;  // a token each
};
// Of some blocks of `tokens` [blocks, T], padding (baseline::used_tokens) behind them, by `output` [n, T,
// vocabulary]: every token but the first, by the scores of the place before it. Throws Error (bad_file) on a
// token that is not among the model's.
std::vector<NextWord> next_words_of(const Tensor& tokens, std::span<const std::int64_t> indices,
                                    const Tensor& output);

// Words in their sentences, and what the model would go on with.
std::string present_next_words(const Fields& fields, const Predictions& found, page::Page& page);

}  // namespace superstep::workload
