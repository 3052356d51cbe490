// BERT that answers questions by a part of a text (J. Devlin et al., arXiv 1810.04805, section 4.2): the base
// size, 12 layers of width 768, and two scores a token, of being the answer's first and last.
//
// input_ids, attention_mask, token_type_ids i64 [N, T] -> start, end f32 [N, T].
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/language/bert/encoder.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr EncoderSizes base{12, 768, 12, 384, 30522};

graph::Graph build_squad(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const EncoderSizes s = encoder_sizes(options);
  graph::Graph graph("bert-base-squad");
  Builder b(graph);
  Layers layers(b, seed);
  const auto input = [&](const char* name) { return b.input(name, ElementType::i64, {batch, s.length}); };
  const Var ids = input("input_ids"), mask = input("attention_mask"), types = input("token_type_ids");
  Encoder encoder(layers, s);
  const Var x = encoder.run({.ids = ids, .types = types}, encoder.hidden_padding(mask));
  const Var scores = layers.linear(x, "answer", 2);
  b.set_name("answer");
  const std::vector<Var> parts = op::split(scores, 2, {1, 1});
  b.output("start", op::reshape(parts[0], {batch, s.length}));
  b.output("end", op::reshape(parts[1], {batch, s.length}));
  b.set_name({});
  return graph;
}

transform::LossTerm place(const char* name, const char* target) {
  return {.kind = transform::LossKind::cross_entropy, .output = name, .target = target, .weight = 0.5};
}

}  // namespace

Workload bert_base_squad() {
  using enum ElementType;
  const std::int64_t length = base.length;
  const transform::LossSpec loss{{place("start", "start_label"), place("end", "end_label")}};
  const transform::OptimizerSpec adamw{
      .kind = transform::OptimizerKind::adamw, .epsilon = 1e-6, .weight_decay = 0.01, .decay_vectors = false};
  std::vector<OptionSpec> options = encoder_options(base);
  options.push_back({"exchanged", "0.1", "of generated questions: share of words exchanged for others"});
  options.push_back(
      {"shortest", "0", "of generated questions: tokens of the shortest block; 0: all are full"});
  return {
      .name = "bert-base-squad",
      .summary = "where in a text the answer to a question is, by twelve transformer layers of width 768",
      .options = std::move(options),
      .build = build_squad,
      .parameters = 108893186,
      .flops = 70931675136,
      .inputs = {{"input_ids", i64, {length}, "", "[CLS] question [SEP] text [SEP]"},
                 {"attention_mask", i64, {length}, "", "1 for tokens, 0 for padding"},
                 {"token_type_ids", i64, {length}, "", "1 in the text"}},
      .outputs = {{"start", f32, {length}, "", "scores of being the answer's first token"},
                  {"end", f32, {length}, "", "scores of being the answer's last token"}},
      .targets = {{"start_label", i64, {}, "", "the answer's first token"},
                  {"end_label", i64, {}, "", "the answer's last token"}},
      .training = {.batch = 32,
                   .epochs = 3,
                   .loss = loss,
                   .optimizer = adamw,
                   .learning_rate = 5e-4,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.1}},
      .published =
          Recipe{.batch = 32,
                 .epochs = 3,
                 .loss = loss,
                 .optimizer = adamw,
                 .learning_rate = 5e-5,
                 .schedule = {.kind = Schedule::Kind::linear, .warm_up_share = 0.1},
                 .source = "J. Devlin et al., arXiv 1810.04805, section 4.2: from pre-trained weights; "
                           "warm-up and decay as in the authors' program"},
      .by_default = RecipeName::quick,
      .open = open_questions,
      .metrics = {{"exact_match", "", true}, {"f1", "", true}, {"exact_bound", "", true}},
      .target = std::nullopt,
      .weight_names = bert_names,
      .takes_texts = true,
  };
}

}  // namespace superstep::workload
