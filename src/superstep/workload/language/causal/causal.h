// The parts of the models that continue text, which their files share.
#pragma once

#include <string>

#include "superstep/base/function_ref.h"
#include "superstep/workload/attention.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {

// input_ids [batch, length] -> logits [batch, length, vocabulary], by what `decoder` makes of the tokens.
graph::Graph next_words_graph(const char* name, std::int64_t batch, std::int64_t length, std::uint64_t seed,
                              FunctionRef<Var(Layers& layers, Var ids)> decoder);

// The workload with the ports, the data (blocks of a synthetic language: every token predicts the next one)
// and the recipe (cross entropy of the next tokens, by AdamW) of such a model; length and vocabulary as by
// default.
Workload by_next_words(Workload workload, std::int64_t length, std::int64_t vocabulary);

// softmax(q k' / sqrt(head size)) v, in which no position sees a later one. q [N, heads, T, size], k and v
// [N, key heads, T, size], each shared by as many heads -> [N, T, heads * size].
Var causal_attention(Layers& layers, Var q, Var k, Var v, const std::string& name, double dropped);

}  // namespace superstep::workload
