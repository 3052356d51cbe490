// GPT-2: A. Radford et al., Language Models are Unsupervised Multitask Learners, 2019.
//
// input_ids i64 [N, T] -> logits f32 [N, T, vocabulary], by the table of embeddings itself. The smallest of
// the published sizes, 124,439,808 parameters; the large one has 36 layers of width 1280 with 20 heads.
#include <fmt/format.h>

#include "superstep/language/names.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/matmul.h"
#include "superstep/workload/language/causal/causal.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr double dropped_share = 0.1, norm_epsilon = 1e-5;
constexpr const char* name_of_model = "gpt2";

struct Sizes {
  std::int64_t layers, width, heads, length, positions, vocabulary;
};

Sizes sizes_of(const Options& options) {
  const Sizes s{options.integer("layers", 1, 200),        options.integer("width", 8, 16384),
                options.integer("heads", 1, 256),         options.integer("length", 2, 1 << 17),
                options.integer("positions", 2, 1 << 17), options.integer("vocabulary", 64, 1000000)};
  if (s.width % s.heads != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a width of {} cannot be divided into {} heads", s.width, s.heads),
                "option heads", "take a divisor of the width");
  if (s.length > s.positions)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a length of {} is beyond the {} positions there are", s.length, s.positions),
                "option length");
  return s;
}

class Decoder {
 public:
  Decoder(Layers& layers, const Sizes& sizes) : layers_(layers), b_(layers.builder()), s_(sizes) {}

  Var run(Var ids) {
    Var x = embedded(ids);
    for (std::int64_t i = 0; i < s_.layers; ++i) x = layer(x, fmt::format("layer{}", i));
    x = layers_.layer_norm(x, "norm", norm_epsilon);
    return op::matmul(x, op::transpose(words_, {1, 0}));
  }

 private:
  Var embedded(Var ids) {
    const Var words = layers_.embedding(ids, "embeddings.word", s_.vocabulary, s_.width);
    words_ = b_.var(b_.graph().find_value("embeddings.word.weight"));
    constexpr double limit = 0.0173;  // a standard deviation of 0.01, drawn uniformly
    const Var table = layers_.uniform("embeddings.position.weight", {s_.positions, s_.width}, limit);
    const op::NameScope scope(b_, "embeddings");
    return layers_.dropout(words + op::slice(table, {0}, {s_.length}, {0}), "dropout", dropped_share);
  }

  Var layer(Var x, const std::string& name) {
    const Var in = layers_.layer_norm(x, name + ".attention.norm", norm_epsilon);
    const Var all = layers_.linear(in, name + ".attention.in", 3 * s_.width);
    const std::vector<Var> parts = op::split(all, 2, {s_.width, s_.width, s_.width});
    const Var mixed =
        causal_attention(layers_, split_heads(parts[0], s_.heads), split_heads(parts[1], s_.heads),
                         split_heads(parts[2], s_.heads), name + ".attention", dropped_share);
    const Var attended = layers_.linear(mixed, name + ".attention.out", s_.width);
    x = x + layers_.dropout(attended, name + ".attention.dropout", dropped_share);
    const Var inner =
        layers_.linear(layers_.layer_norm(x, name + ".norm", norm_epsilon), name + ".inner", 4 * s_.width);
    const Var outer = layers_.linear(op::gelu(inner, /*tanh_approximation=*/true), name + ".outer", s_.width);
    return x + layers_.dropout(outer, name + ".dropout", dropped_share);
  }

  Layers& layers_;
  Builder& b_;
  Sizes s_;
  Var words_;  // the table of embeddings
};

graph::Graph build_gpt2(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const Sizes sizes = sizes_of(options);
  return next_words_graph(name_of_model, batch, sizes.length, seed,
                          [&](Layers& layers, Var ids) { return Decoder(layers, sizes).run(ids); });
}

}  // namespace

Workload gpt2() {
  Workload workload{
      .name = name_of_model,
      .summary = "the next tokens of a text, by twelve transformer layers of width 768",
      .options = {{"layers", "12", "one after the other"},
                  {"width", "768", "of every token"},
                  {"heads", "12", "of attention; a divisor of the width"},
                  {"length", "128", "tokens of a block"},
                  {"positions", "1024", "tokens that a text may have at most"},
                  {"vocabulary", "50257", "tokens that there are"}},
      .build = build_gpt2,
      .parameters = 124439808,
      .flops = 32283338112,
      .weight_names = language::gpt2_names,
      .takes_texts = true,
  };
  return by_next_words(std::move(workload), 128, 50257);
}

}  // namespace superstep::workload
