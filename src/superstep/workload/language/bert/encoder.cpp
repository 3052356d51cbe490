#include "superstep/workload/language/bert/encoder.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/workload/attention.h"

namespace superstep::workload {
namespace {

constexpr double hidden_score = -10000;  // added to the scores of padding: its exponential is 0

// 0 where both are alike, 1 where they are whole numbers apart.
Var differs(Var a, Var b) { return op::min(op::abs(a - b), a.builder().scalar(a.element(), 1)); }

}  // namespace

EncoderSizes encoder_sizes(const Options& options) {
  const EncoderSizes sizes{
      options.integer("layers", 1, 96), options.integer("width", 8, 8192), options.integer("heads", 1, 128),
      options.integer("length", 4, Encoder::most_positions), options.integer("vocabulary", 64, 1000000)};
  if (sizes.width % sizes.heads != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a width of {} cannot be divided into {} heads", sizes.width, sizes.heads),
                "option heads", "take a divisor of the width");
  return sizes;
}

std::vector<OptionSpec> encoder_options(const EncoderSizes& s) {
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  return {{"layers", text(s.layers), "one after the other"},
          {"width", text(s.width), "of every token"},
          {"heads", text(s.heads), "of attention; a divisor of the width"},
          {"length", text(s.length), "tokens of a block, at most 512"},
          {"vocabulary", text(s.vocabulary), "tokens that there are"}};
}

Var Encoder::run(const Tokens& tokens, Var hidden) {
  Var x = embedded(tokens);
  for (std::int64_t i = 0; i < s_.layers; ++i) x = layer(x, hidden, fmt::format("layer{}", i));
  return x;
}

Var Encoder::scores(Var x) { return op::matmul(x, op::transpose(words_, {1, 0})); }

Var Encoder::embedded(const Tokens& tokens) {
  const Var words = layers_.embedding(tokens.ids, "embeddings.word", s_.vocabulary, s_.width);
  words_ = b_.var(b_.graph().find_value("embeddings.word.weight"));
  const Var table =
      layers_.uniform("embeddings.position.weight", {most_positions, s_.width}, 0.02 * std::sqrt(3.0));
  Var types;
  if (tokens.types.valid()) types = layers_.embedding(tokens.types, "embeddings.type", 2, s_.width);
  b_.set_name("embeddings");
  const Var places = tokens.positions.valid() ? op::gather(table, tokens.positions)
                                              : op::slice(table, {0}, {s_.length}, {0});
  const Var sum = words + places;
  const Var all = types.valid() ? sum + types : sum;
  b_.set_name({});
  return layers_.dropout(layers_.layer_norm(all, "embeddings.norm", norm_epsilon), "embeddings.dropout",
                         dropped_share);
}

Var Encoder::hidden_padding(Var mask) {
  const op::NameScope scope(b_, "mask");
  const Var padding = (1.0 - op::cast(mask, ElementType::f32)) * hidden_score;
  return op::reshape(padding, {mask.shape()[0], 1, 1, s_.length});
}

Var Encoder::hidden_others(Var mask) {
  const op::NameScope scope(b_, "mask");
  const std::int64_t batch = mask.shape()[0];
  const Var numbers = op::cast(mask, ElementType::f32);
  const Var looking = op::reshape(numbers, {batch, 1, s_.length, 1}),
            seen = op::reshape(numbers, {batch, 1, 1, s_.length});
  const Var padding = 1.0 - op::min(seen, b_.scalar(ElementType::f32, 1));
  return (differs(looking, seen) + padding) * hidden_score;
}

Var Encoder::attention(Var x, Var hidden, const std::string& name) {
  const Var q = layers_.linear(x, name + ".query", s_.width), k = layers_.linear(x, name + ".key", s_.width),
            v = layers_.linear(x, name + ".value", s_.width);
  Var mixed;
  {
    const op::NameScope scope(b_, name);
    mixed = workload::attention(layers_, split_heads(q, s_.heads), split_heads(k, s_.heads),
                                split_heads(v, s_.heads), hidden, dropped_share);
  }
  return layers_.linear(mixed, name + ".out", s_.width);
}

Var Encoder::layer(Var x, Var hidden, const std::string& name) {
  const Var attended =
      layers_.dropout(attention(x, hidden, name + ".attention"), name + ".attention.dropout", dropped_share);
  x = layers_.layer_norm(attended + x, name + ".attention.norm", norm_epsilon);
  const Var inner = layers_.gelu(layers_.linear(x, name + ".inner", 4 * s_.width));
  const Var outer =
      layers_.dropout(layers_.linear(inner, name + ".outer", s_.width), name + ".dropout", dropped_share);
  return layers_.layer_norm(outer + x, name + ".norm", norm_epsilon);
}

}  // namespace superstep::workload
