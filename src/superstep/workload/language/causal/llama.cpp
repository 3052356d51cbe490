// Llama: H. Touvron et al., arXiv 2302.13971 and 2307.09288: root mean square norms before each part, rotary
// positions, gated inner layers, key heads that several query heads share.
//
// input_ids i64 [N, T] -> logits f32 [N, T, vocabulary]. As it stands a model of two layers; 7B of the second
// version is layers=32 width=4096 heads=32 key-heads=32 inner=11008 vocabulary=32000: 6,738,415,616
// parameters.
#include <fmt/format.h>

#include <cmath>

#include "superstep/language/names.h"
#include "superstep/language/rotary.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/group_normalization.h"
#include "superstep/workload/language/causal/causal.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr const char* name_of_model = "llama";

struct Sizes {
  std::int64_t layers, width, heads, key_heads, inner, length, vocabulary;
  double epsilon, base;
  bool tied;
  language::RotaryScaling scaling;

  std::int64_t head_size() const { return width / heads; }
};

Sizes sizes_of(const Options& options) {
  Sizes s{options.integer("layers", 1, 200),
          options.integer("width", 8, 16384),
          options.integer("heads", 1, 256),
          options.integer("key-heads", 1, 256),
          options.integer("inner", 8, 65536),
          options.integer("length", 2, 1 << 20),
          options.integer("vocabulary", 64, 1000000),
          options.number("epsilon", 0, 1),
          options.number("base", 1, 1e12),
          options.flag("tied"),
          language::rotary_scaling_from_text(options.text("rope-scaling"))};
  if (s.width % s.heads != 0 || s.head_size() % 2 != 0)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a width of {} cannot be divided into {} heads of an even size", s.width, s.heads),
        "option heads");
  if (s.heads % s.key_heads != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} heads cannot share {} key heads", s.heads, s.key_heads), "option key-heads",
                "take a divisor of the heads");
  return s;
}

class Decoder {
 public:
  Decoder(Layers& layers, const Sizes& sizes) : layers_(layers), b_(layers.builder()), s_(sizes) {}

  Var run(Var ids) {
    Var x = layers_.embedding(ids, "embeddings.word", s_.vocabulary, s_.width);
    const Var words = b_.var(b_.graph().find_value("embeddings.word.weight"));
    set_angles();
    for (std::int64_t i = 0; i < s_.layers; ++i) x = layer(x, fmt::format("layer{}", i));
    x = norm(x, "norm");
    return s_.tied ? op::matmul(x, op::transpose(words, {1, 0})) : plain(x, "head", s_.vocabulary);
  }

 private:
  // Cosines and sines of every position and pair: [T, head size / 2].
  void set_angles() {
    const std::vector<double> frequencies = language::rotary_frequencies(s_.head_size(), s_.base, s_.scaling);
    const auto pairs = static_cast<std::int64_t>(frequencies.size());
    Tensor cosines(ElementType::f32, {s_.length, pairs}), sines(ElementType::f32, {s_.length, pairs});
    for (std::int64_t t = 0; t < s_.length; ++t)
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(t) * frequencies[static_cast<std::size_t>(i)];
        cosines.set(t * pairs + i, std::cos(angle));
        sines.set(t * pairs + i, std::sin(angle));
      }
    cosines_ = b_.constant(std::move(cosines));
    sines_ = b_.constant(std::move(sines));
  }

  Var norm(Var x, const std::string& name) {
    const op::NameScope scope(b_, name);
    return op::rms_normalization(x, layers_.filled(name + ".weight", {s_.width}, 1), -1, s_.epsilon);
  }

  Var plain(Var x, const std::string& name, std::int64_t features) {
    const op::NameScope scope(b_, name);
    const std::int64_t in = x.shape()[x.shape().rank() - 1];
    return op::matmul(x, layers_.weight(name + ".weight", {in, features}, in, features));
  }

  // x [N, heads, T, size]: the first half of a head and the second are the pairs.
  Var turned(Var x) {
    const std::int64_t half = s_.head_size() / 2;
    const std::vector<Var> parts = op::split(x, 3, {half, half});
    const Var a = parts[0], b = parts[1];
    return op::concat(std::vector{a * cosines_ - b * sines_, b * cosines_ + a * sines_}, 3);
  }

  Var layer(Var x, const std::string& name) {
    const std::int64_t keys = s_.key_heads * s_.head_size();
    const Var in = norm(x, name + ".attention.norm");
    const Var q = split_heads(plain(in, name + ".attention.query", s_.width), s_.heads),
              k = split_heads(plain(in, name + ".attention.key", keys), s_.key_heads),
              v = split_heads(plain(in, name + ".attention.value", keys), s_.key_heads);
    Var turned_q, turned_k;
    {
      const op::NameScope scope(b_, name + ".attention.rotary");
      turned_q = turned(q), turned_k = turned(k);
    }
    const Var mixed = causal_attention(layers_, turned_q, turned_k, v, name + ".attention", 0);
    x = x + plain(mixed, name + ".attention.out", s_.width);
    const Var rest = norm(x, name + ".norm");
    const Var gate = plain(rest, name + ".gate", s_.inner), inner = plain(rest, name + ".inner", s_.inner);
    return x + plain(layers_.silu(gate) * inner, name + ".outer", s_.width);
  }

  Layers& layers_;
  Builder& b_;
  Sizes s_;
  Var cosines_, sines_;
};

graph::Graph build_llama(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const Sizes sizes = sizes_of(options);
  return next_words_graph(name_of_model, batch, sizes.length, seed,
                          [&](Layers& layers, Var ids) { return Decoder(layers, sizes).run(ids); });
}

}  // namespace

Workload llama() {
  Workload workload{
      .name = name_of_model,
      .summary = "the next tokens of a text, by layers with rotary positions and gates",
      .options = {{"layers", "2", "one after the other"},
                  {"width", "64", "of every token"},
                  {"heads", "4", "of attention; a divisor of the width"},
                  {"key-heads", "2", "that the heads share; a divisor of them"},
                  {"inner", "172", "width of the gated layer"},
                  {"length", "64", "tokens of a block"},
                  {"vocabulary", "512", "tokens that there are"},
                  {"epsilon", "1e-5", "of the norms"},
                  {"base", "10000", "of the rotary positions"},
                  {"rope-scaling", "none", "none, linear:FACTOR or llama3:FACTOR,LOW,HIGH,LENGTH"},
                  {"tied", "no", "tokens are scored by the table of embeddings"}},
      .build = build_llama,
      // 2 * 512 * 64 + 2 * (64 * (64 + 32 + 32 + 64) + 3 * 64 * 172 + 2 * 64) + 64
      .parameters = 156480,
      .flops = 18297984,
      .weight_names = language::llama_names,
      .takes_texts = true,
  };
  return by_next_words(std::move(workload), 64, 512);
}

}  // namespace superstep::workload
