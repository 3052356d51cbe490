// Transformer encoders that fill in masked words: J. Devlin et al., arXiv 1810.04805; V. Sanh et al.,
// DistilBERT, arXiv 1910.01108.
//
// input_ids, attention_mask i64 [N, T] -> logits f32 [N, T, vocabulary], by the table of embeddings itself.
// bert-small: four layers of width 256, for a synthetic language whose entropy is known. distilbert: six
// layers of width 768, no token types, no pooler; 66,362,880 parameters.
#include <fmt/format.h>

#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/language/bert/encoder.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr double masked_share = 0.15;  // of all words: the loss is the mean over these

graph::Graph build_encoder(const char* name, std::int64_t batch, const Options& options, std::uint64_t seed) {
  const EncoderSizes sizes = encoder_sizes(options);
  graph::Graph graph(name);
  Builder b(graph);
  Layers layers(b, seed);
  const Var ids = b.input("input_ids", ElementType::i64, {batch, sizes.length});
  const Var mask = b.input("attention_mask", ElementType::i64, {batch, sizes.length});
  Encoder encoder(layers, sizes);
  b.output("logits", encoder.scores(encoder.run({.ids = ids}, encoder.hidden_padding(mask))));
  return graph;
}

graph::Graph build_bert_small(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_encoder("bert-small", batch, options, seed);
}
graph::Graph build_distilbert(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_encoder("distilbert", batch, options, seed);
}

// As Hugging Face's DistilBertModel is written, and the model for masked words with it: its own layers before
// the scores, vocab_transform and vocab_layer_norm, are not in this one.
std::span<const data::NameRule> distilbert_names() {
  using enum data::Arrangement;
  static const std::vector<data::NameRule> rules = {
      {"embeddings.word.weight", "embeddings.word_embeddings.weight"},
      {"embeddings.position.weight", "embeddings.position_embeddings.weight"},
      {"embeddings.norm.*", "embeddings.LayerNorm.*"},
      {"layer#.attention.query.weight", "layer.#.attention.q_lin.weight", transposed},
      {"layer#.attention.key.weight", "layer.#.attention.k_lin.weight", transposed},
      {"layer#.attention.value.weight", "layer.#.attention.v_lin.weight", transposed},
      {"layer#.attention.out.weight", "layer.#.attention.out_lin.weight", transposed},
      {"layer#.attention.query.bias", "layer.#.attention.q_lin.bias"},
      {"layer#.attention.key.bias", "layer.#.attention.k_lin.bias"},
      {"layer#.attention.value.bias", "layer.#.attention.v_lin.bias"},
      {"layer#.attention.out.bias", "layer.#.attention.out_lin.bias"},
      {"layer#.attention.norm.*", "layer.#.sa_layer_norm.*"},
      {"layer#.inner.weight", "layer.#.ffn.lin1.weight", transposed},
      {"layer#.inner.bias", "layer.#.ffn.lin1.bias"},
      {"layer#.outer.weight", "layer.#.ffn.lin2.weight", transposed},
      {"layer#.outer.bias", "layer.#.ffn.lin2.bias"},
      {"layer#.norm.*", "layer.#.output_layer_norm.*"},
  };
  return rules;
}

Workload encoder(const char* name, const EncoderSizes& s) {
  return {
      .name = name,
      .summary = fmt::format("masked words of a synthetic language, by {} transformer layers of width {}",
                             s.layers, s.width),
      .options = encoder_options(s),
      .build = nullptr,
      .parameters = 0,
      .inputs = {{"input_ids", ElementType::i64, {s.length}, "", "tokens, some of them masked"},
                 {"attention_mask", ElementType::i64, {s.length}, "", "1 for tokens, 0 for padding"}},
      .outputs = {{"logits", ElementType::f32, {s.length, s.vocabulary}, "", "a score a token"}},
      .targets =
          {{"labels", ElementType::i64, {s.length}, "", "the true token where one is masked, else -100"}},
      .training = {.batch = 32,
                   .epochs = 4,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::token_cross_entropy,
                                                 .target = "labels",
                                                 .weight = 1 / masked_share}}},
                   .optimizer = {.kind = transform::OptimizerKind::adamw, .weight_decay = 0.01},
                   .learning_rate = 5e-4,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.1}},
      .open = open_masked_words,
      .metrics = {{"masked_loss", "nat"}, {"masked_bound", "nat"}, {"masked_accuracy", "", true}},
      .target = std::nullopt,
  };
}

}  // namespace

Workload bert_small() {
  Workload workload = encoder("bert-small", {4, 256, 4, 64, 1024});
  workload.build = build_bert_small;
  workload.parameters = 3552768;
  workload.flops = 455690112;
  return workload;
}

Workload distilbert() {
  Workload workload = encoder("distilbert", {6, 768, 12, 128, 30522});
  workload.build = build_distilbert;
  workload.parameters = 66362880;
  workload.flops = 17202517248;
  workload.weight_names = distilbert_names;
  return workload;
}

}  // namespace superstep::workload
