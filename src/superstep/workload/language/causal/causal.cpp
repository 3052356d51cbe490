#include "superstep/workload/language/causal/causal.h"

#include <vector>

#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"

namespace superstep::workload {
namespace {

constexpr double hidden_score = -10000;  // added to the scores of later positions: its exponential is 0

// 0 where a position may look, a large negative number after it: [T, T].
Var later_hidden(Builder& builder, std::int64_t length) {
  Tensor mask(ElementType::f32, {length, length});
  const auto values = mask.as<float>();
  for (std::int64_t row = 0; row < length; ++row)
    for (std::int64_t column = row + 1; column < length; ++column)
      values[static_cast<std::size_t>(row * length + column)] = static_cast<float>(hidden_score);
  return builder.constant(std::move(mask));
}

// Each key head as often as query heads share it, one after the other.
Var shared(Var x, std::int64_t heads) {
  const Shape shape = x.shape();
  if (shape[1] == heads) return x;
  const Var apart = op::reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  const Var repeated = op::concat(std::vector<Var>(static_cast<std::size_t>(heads / shape[1]), apart), 2);
  return op::reshape(repeated, {shape[0], heads, shape[2], shape[3]});
}

Recipe recipe() {
  return {
      .batch = 16,
      .epochs = 4,
      .loss = {{transform::LossTerm{.kind = transform::LossKind::token_cross_entropy, .target = "labels"}}},
      .optimizer = {.kind = transform::OptimizerKind::adamw, .beta2 = 0.95, .weight_decay = 0.1},
      .learning_rate = 5e-4,
      .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.1}};
}

}  // namespace

Var causal_attention(Layers& layers, Var q, Var k, Var v, const std::string& name, double dropped) {
  const op::NameScope scope(layers.builder(), name);
  const std::int64_t heads = q.shape()[1], length = q.shape()[2];
  return attention(layers, q, shared(k, heads), shared(v, heads), later_hidden(layers.builder(), length),
                   dropped);
}

graph::Graph next_words_graph(const char* name, std::int64_t batch, std::int64_t length, std::uint64_t seed,
                              FunctionRef<Var(Layers& layers, Var ids)> decoder) {
  graph::Graph graph(name);
  op::Builder b(graph);
  Layers layers(b, seed);
  const Var ids = b.input("input_ids", ElementType::i64, {batch, length});
  b.output("logits", decoder(layers, ids));
  return graph;
}

Workload by_next_words(Workload workload, std::int64_t length, std::int64_t vocabulary) {
  workload.inputs = {{"input_ids", ElementType::i64, {length}, "", "tokens"}};
  workload.outputs = {
      {"logits", ElementType::f32, {length, vocabulary}, "", "a score a token that may come next"}};
  workload.targets = {{"labels", ElementType::i64, {length}, "", "the next token, -100 where there is none"}};
  workload.training = recipe();
  workload.open = [name = workload.name](const TaskSettings& settings, const Options& model) {
    return open_next_words(name, settings, model);
  };
  workload.metrics = {{"perplexity", ""},
                      {"perplexity_bound", ""},
                      {"token_loss", "nat"},
                      {"token_bound", "nat"},
                      {"token_accuracy", "", true}};
  return workload;
}

}  // namespace superstep::workload
