// The parts of the models that continue text, which their files share.
#pragma once

#include <memory>
#include <string>

#include "superstep/workload/layers.h"
#include "superstep/workload/recipe.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Blocks of a synthetic language: every token predicts the next one.
std::unique_ptr<Task> open_next_words(const TaskSettings& settings, const Options& model);

// Softmax and cross entropy of the next tokens, by AdamW.
Recipe by_next_words();

// softmax(q k' / sqrt(head size)) v, in which no position sees a later one. q [N, heads, T, size], k and v
// [N, key heads, T, size], each shared by as many heads -> [N, T, heads * size].
Var causal_attention(Layers& layers, Var q, Var k, Var v, const std::string& name, double dropped);

// [N, T, heads * size] -> [N, heads, T, size].
Var split_heads(Var x, std::int64_t heads);

}  // namespace superstep::workload
