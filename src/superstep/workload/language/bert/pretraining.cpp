// BERT as it is pre-trained (J. Devlin et al., arXiv 1810.04805, section 3.1): words that were hidden, and
// whether one paragraph follows another. The large size: 24 layers of width 1024.
//
// input_ids, attention_mask, token_type_ids i64 [N, T], masked_positions i64 [N, P] -> logits f32 [N, P,
// vocabulary] of the hidden words, next_sentence f32 [N, sequences, 2]. P is 5 in 32 of the tokens, as in the
// authors' program: 20 of 128, 80 of 512. With sequences=K a block holds up to K pairs (M. Krell et al.,
// arXiv 2107.02027), numbered by the attention mask, and there are two more inputs: position_ids [N, T] and
// first_positions [N, K].
#include <fmt/format.h>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/language/bert/encoder.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr EncoderSizes large{24, 1024, 16, 128, 30522};

graph::Graph build_bert_large(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const EncoderSizes s = encoder_sizes(options);
  const std::int64_t sequences = options.integer("sequences", 1, 64), masked = masked_places(s.length);
  graph::Graph graph("bert-large");
  Builder b(graph);
  Layers layers(b, seed);
  const auto input = [&](const char* name, std::int64_t count) {
    return b.input(name, ElementType::i64, {batch, count});
  };
  const Var ids = input("input_ids", s.length), mask = input("attention_mask", s.length),
            types = input("token_type_ids", s.length), places = input("masked_positions", masked);
  Var positions, firsts;
  if (sequences > 1)
    positions = input("position_ids", s.length), firsts = input("first_positions", sequences);
  Encoder encoder(layers, s);
  const Var hidden = sequences > 1 ? encoder.hidden_others(mask) : encoder.hidden_padding(mask);
  const Var x = encoder.run({.ids = ids, .types = types, .positions = positions}, hidden);

  b.set_name("masked");
  const Var chosen = op::gather_rows(x, places);
  b.set_name({});
  const Var words = layers.layer_norm(layers.gelu(layers.linear(chosen, "masked.transform", s.width)),
                                      "masked.norm", Encoder::norm_epsilon);
  b.output("logits", encoder.scores(words) + layers.zeros("masked.bias", {s.vocabulary}));

  b.set_name("pooler");
  const Var first = sequences > 1 ? op::gather_rows(x, firsts) : op::slice(x, {0}, {1}, {1});
  b.set_name({});
  const Var pooled = op::tanh(layers.linear(first, "pooler", s.width));
  b.output("next_sentence", layers.linear(pooled, "next", 2));
  return graph;
}

using transform::LossKind;
using transform::LossTerm;

// Divided by all places, of which about half hold a word: other places are of blocks that are not full.
transform::LossSpec both_losses() {
  return {
      {LossTerm{
           .kind = LossKind::token_cross_entropy, .output = "logits", .target = "masked_labels", .weight = 2},
       LossTerm{.kind = LossKind::token_cross_entropy, .output = "next_sentence", .target = "next_labels"}}};
}

}  // namespace

std::int64_t masked_places(std::int64_t length) { return (5 * length + 31) / 32; }

Workload bert_large() {
  using enum ElementType;
  const std::int64_t length = large.length, masked = masked_places(length);
  std::vector<OptionSpec> options = encoder_options(large);
  options.push_back({"sequences", "1", "pairs of paragraphs that are packed into a block, at most"});
  const transform::OptimizerSpec lamb{
      .kind = transform::OptimizerKind::lamb, .epsilon = 1e-6, .weight_decay = 0.01, .decay_vectors = false};
  return {
      .name = "bert-large",
      .summary = "hidden words and following paragraphs, by 24 transformer layers of width 1024",
      .options = std::move(options),
      .build = build_bert_large,
      .parameters = 336226108,
      .flops = 80361079750,
      .inputs =
          {{"input_ids", i64, {length}, "", "tokens, some of them masked"},
           {"attention_mask", i64, {length}, "", "1 for tokens, 0 for padding; of packed pairs their number"},
           {"token_type_ids", i64, {length}, "", "1 in the second paragraph"},
           {"masked_positions", i64, {masked}, "", "where words are wanted"}},
      .outputs = {{"logits", f32, {masked, large.vocabulary}, "", "a score a token that may stand there"},
                  {"next_sentence", f32, {1, 2}, "", "scores of following and not following"}},
      .targets = {{"masked_labels", i64, {masked}, "", "the true token, -100 where none is wanted"},
                  {"next_labels", i64, {1}, "", "0: it follows, 1: it does not, -100: no such pair"}},
      .training = {.batch = 32,
                   .epochs = 4,
                   .loss = both_losses(),
                   .optimizer = lamb,
                   .learning_rate = 5e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.1}},
      .published =
          Recipe{.batch = 65536,
                 .epochs = 4,
                 .loss = both_losses(),
                 .optimizer = lamb,
                 .learning_rate = 6e-3,
                 .schedule = {.kind = Schedule::Kind::linear, .warm_up_share = 0.2843},
                 .source = "Y. You et al., ICLR 2020, phase 1, with NVIDIA's rate and warm-up for it; "
                           "phase 2 is length=512 from this one's weights, batch 32768, 4e-3; "
                           "epochs chosen here"},
      .by_default = RecipeName::quick,
      .open = open_paragraph_pairs,
      .metrics = {{"masked_loss", "nat"},
                  {"masked_bound", "nat"},
                  {"masked_accuracy", "", true},
                  {"next_accuracy", "", true},
                  {"next_bound", "", true}},
      .target = std::nullopt,
      .weight_names = bert_names,
  };
}

}  // namespace superstep::workload
