// What Hugging Face's files call the arrays of BERT; those of the first release have gamma and beta for the
// scale and bias of norms.
#include "superstep/workload/language/bert/bert.h"

namespace superstep::workload {
namespace {

using enum data::Arrangement;
using Rules = std::vector<data::NameRule>;

void add_product(Rules& rules, const std::string& ours, const std::string& theirs) {
  rules.push_back({ours + ".weight", theirs + ".weight", transposed});
  rules.push_back({ours + ".bias", theirs + ".bias"});
}

void add_norm(Rules& rules, const std::string& ours, const std::string& theirs) {
  rules.push_back({ours + ".*", theirs + ".*"});
  rules.push_back({ours + ".weight", theirs + ".gamma"});
  rules.push_back({ours + ".bias", theirs + ".beta"});
}

Rules make_names() {
  Rules rules = {{"embeddings.word.weight", "embeddings.word_embeddings.weight"},
                 {"embeddings.position.weight", "embeddings.position_embeddings.weight"},
                 {"embeddings.type.weight", "embeddings.token_type_embeddings.weight"}};
  add_norm(rules, "embeddings.norm", "embeddings.LayerNorm");
  for (const char* part : {"query", "key", "value"})
    add_product(rules, std::string("layer#.attention.") + part,
                std::string("encoder.layer.#.attention.self.") + part);
  add_product(rules, "layer#.attention.out", "encoder.layer.#.attention.output.dense");
  add_norm(rules, "layer#.attention.norm", "encoder.layer.#.attention.output.LayerNorm");
  add_product(rules, "layer#.inner", "encoder.layer.#.intermediate.dense");
  add_product(rules, "layer#.outer", "encoder.layer.#.output.dense");
  add_norm(rules, "layer#.norm", "encoder.layer.#.output.LayerNorm");
  add_product(rules, "pooler", "pooler.dense");
  add_product(rules, "masked.transform", "cls.predictions.transform.dense");
  add_norm(rules, "masked.norm", "cls.predictions.transform.LayerNorm");
  rules.push_back({"masked.bias", "cls.predictions.bias"});
  add_product(rules, "next", "cls.seq_relationship");
  add_product(rules, "answer", "qa_outputs");
  return rules;
}

}  // namespace

std::span<const data::NameRule> bert_names() {
  static const Rules rules = make_names();
  return rules;
}

}  // namespace superstep::workload
