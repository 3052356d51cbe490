// Transformer encoders that fill in masked words: J. Devlin et al., arXiv 1810.04805; V. Sanh et al.,
// DistilBERT, arXiv 1910.01108.
//
// input_ids, attention_mask i64 [N, T] -> logits f32 [N, T, vocabulary], by the table of embeddings itself.
// bert-small: four layers of width 256, for a synthetic language whose entropy is known. distilbert: six
// layers of width 768, no token types, no pooler; 66,362,880 parameters.
#include <fmt/format.h>

#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/workload/attention.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr double norm_epsilon = 1e-12, dropped_share = 0.1;
constexpr double hidden_score = -10000;  // added to the scores of padding: its exponential is 0
constexpr std::int64_t most_positions = 512;
constexpr double masked_share = 0.15;  // of all words: the loss is the mean over these

struct EncoderSizes {
  std::int64_t layers, width, heads, length, vocabulary;
};

EncoderSizes encoder_sizes(const Options& options) {
  const EncoderSizes sizes{options.integer("layers", 1, 96), options.integer("width", 8, 8192),
                           options.integer("heads", 1, 128), options.integer("length", 4, most_positions),
                           options.integer("vocabulary", 64, 1000000)};
  if (sizes.width % sizes.heads != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a width of {} cannot be divided into {} heads", sizes.width, sizes.heads),
                "option heads", "take a divisor of the width");
  return sizes;
}

class Encoder {
 public:
  Encoder(Layers& layers, const EncoderSizes& sizes) : layers_(layers), b_(layers.builder()), s_(sizes) {}

  Var run(Var ids, Var mask) {
    Var x = embedded(ids);
    const Var hidden = hidden_scores(mask);
    for (std::int64_t i = 0; i < s_.layers; ++i) x = layer(x, hidden, fmt::format("layer{}", i));
    return op::matmul(x, op::transpose(words_, {1, 0}));
  }

 private:
  Var embedded(Var ids) {
    const Var words = layers_.embedding(ids, "embeddings.word", s_.vocabulary, s_.width);
    words_ = b_.var(b_.graph().find_value("embeddings.word.weight"));
    const Var table =
        layers_.uniform("embeddings.position.weight", {most_positions, s_.width}, 0.02 * std::sqrt(3.0));
    b_.set_name("embeddings");
    const Var sum = words + op::slice(table, {0}, {s_.length}, {0});
    b_.set_name({});
    return layers_.dropout(layers_.layer_norm(sum, "embeddings.norm", norm_epsilon), "embeddings.dropout",
                           dropped_share);
  }

  // 0 for words and a large negative number for padding: [N, 1, 1, T].
  Var hidden_scores(Var mask) {
    const op::NameScope scope(b_, "mask");
    const Var padding = (1.0 - op::cast(mask, ElementType::f32)) * hidden_score;
    return op::reshape(padding, {mask.shape()[0], 1, 1, s_.length});
  }

  Var attention(Var x, Var hidden, const std::string& name) {
    const Var q = layers_.linear(x, name + ".query", s_.width),
              k = layers_.linear(x, name + ".key", s_.width),
              v = layers_.linear(x, name + ".value", s_.width);
    Var mixed;
    {
      const op::NameScope scope(b_, name);
      mixed = workload::attention(layers_, split_heads(q, s_.heads), split_heads(k, s_.heads),
                                  split_heads(v, s_.heads), hidden, dropped_share);
    }
    return layers_.linear(mixed, name + ".out", s_.width);
  }

  Var layer(Var x, Var hidden, const std::string& name) {
    const Var attended = layers_.dropout(attention(x, hidden, name + ".attention"),
                                         name + ".attention.dropout", dropped_share);
    x = layers_.layer_norm(attended + x, name + ".attention.norm", norm_epsilon);
    const Var inner = layers_.gelu(layers_.linear(x, name + ".inner", 4 * s_.width));
    const Var outer =
        layers_.dropout(layers_.linear(inner, name + ".outer", s_.width), name + ".dropout", dropped_share);
    return layers_.layer_norm(outer + x, name + ".norm", norm_epsilon);
  }

  Layers& layers_;
  Builder& b_;
  EncoderSizes s_;
  Var words_;  // the table of embeddings
};

graph::Graph build_encoder(const char* name, std::int64_t batch, const Options& options, std::uint64_t seed) {
  const EncoderSizes sizes = encoder_sizes(options);
  graph::Graph graph(name);
  Builder b(graph);
  Layers layers(b, seed);
  const Var ids = b.input("input_ids", ElementType::i64, {batch, sizes.length});
  const Var mask = b.input("attention_mask", ElementType::i64, {batch, sizes.length});
  b.output("logits", Encoder(layers, sizes).run(ids, mask));
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
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  return {
      .name = name,
      .summary = fmt::format("masked words of a synthetic language, by {} transformer layers of width {}",
                             s.layers, s.width),
      .options = {{"layers", text(s.layers), "one after the other"},
                  {"width", text(s.width), "of every token"},
                  {"heads", text(s.heads), "of attention; a divisor of the width"},
                  {"length", text(s.length), "tokens of a block, at most 512"},
                  {"vocabulary", text(s.vocabulary), "tokens that there are"}},
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
  return workload;
}

Workload distilbert() {
  Workload workload = encoder("distilbert", {6, 768, 12, 128, 30522});
  workload.build = build_distilbert;
  workload.parameters = 66362880;
  workload.weight_names = distilbert_names;
  return workload;
}

}  // namespace superstep::workload
