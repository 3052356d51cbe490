#include "superstep/language/names.h"

#include <vector>

namespace superstep::language {
namespace {

using data::Arrangement;
using data::NameRule;
using Rules = std::vector<NameRule>;

void add(Rules& rules, const char* ours, std::initializer_list<const char*> theirs,
         Arrangement arrangement = Arrangement::as_it_is) {
  for (const char* name : theirs) rules.push_back({ours, name, arrangement});
}

Rules make_llama_names() {
  Rules rules;
  add(rules, "embeddings.word.weight", {"embed_tokens.weight", "token_embd.weight"});
  add(rules, "layer#.attention.norm.weight", {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"});
  add(rules, "layer#.attention.query.weight", {"layers.#.self_attn.q_proj.weight"}, Arrangement::transposed);
  add(rules, "layer#.attention.query.weight", {"blk.#.attn_q.weight"}, Arrangement::query_pairs);
  add(rules, "layer#.attention.key.weight", {"layers.#.self_attn.k_proj.weight"}, Arrangement::transposed);
  add(rules, "layer#.attention.key.weight", {"blk.#.attn_k.weight"}, Arrangement::key_pairs);
  const auto turned = [&](const char* ours, const char* of_hugging_face, const char* of_gguf) {
    add(rules, ours, {of_hugging_face, of_gguf}, Arrangement::transposed);
  };
  turned("layer#.attention.value.weight", "layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight");
  turned("layer#.attention.out.weight", "layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight");
  turned("layer#.gate.weight", "layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight");
  turned("layer#.inner.weight", "layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight");
  turned("layer#.outer.weight", "layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight");
  add(rules, "layer#.norm.weight", {"layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight"});
  add(rules, "norm.weight", {"norm.weight", "output_norm.weight"});
  add(rules, "layer#.attention.query.bias", {"layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias"});
  add(rules, "layer#.attention.key.bias", {"layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias"});
  add(rules, "layer#.attention.value.bias", {"layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias"});
  add(rules, "layer#.attention.out.bias", {"layers.#.self_attn.o_proj.bias", "blk.#.attn_output.bias"});
  add(rules, "layer#.gate.bias", {"layers.#.mlp.gate_proj.bias", "blk.#.ffn_gate.bias"});
  add(rules, "layer#.inner.bias", {"layers.#.mlp.up_proj.bias", "blk.#.ffn_up.bias"});
  add(rules, "layer#.outer.bias", {"layers.#.mlp.down_proj.bias", "blk.#.ffn_down.bias"});
  add(rules, "own_head.weight", {"lm_head.weight", "output.weight"}, Arrangement::transposed);
  // Without a head of its own the table of embeddings is one.
  add(rules, "head.weight", {"lm_head.weight", "output.weight", "embed_tokens.weight", "token_embd.weight"},
      Arrangement::transposed);
  return rules;
}

// Hugging Face keeps the products of GPT-2 as [in, features], GGUF as [features, in].
Rules make_gpt2_names() {
  Rules rules;
  add(rules, "embeddings.word.weight", {"wte.weight", "token_embd.weight"});
  add(rules, "embeddings.position.weight", {"wpe.weight", "position_embd.weight"});
  add(rules, "layer#.attention.norm.*", {"h.#.ln_1.*", "blk.#.attn_norm.*"});
  add(rules, "layer#.norm.*", {"h.#.ln_2.*", "blk.#.ffn_norm.*"});
  add(rules, "norm.*", {"ln_f.*", "output_norm.*"});
  const auto product = [&](const std::string& ours, const std::string& of_hugging_face,
                           const std::string& of_gguf) {
    rules.push_back({ours + ".weight", of_hugging_face + ".weight", Arrangement::as_it_is});
    rules.push_back({ours + ".weight", of_gguf + ".weight", Arrangement::transposed});
    rules.push_back({ours + ".bias", of_hugging_face + ".bias", Arrangement::as_it_is});
    rules.push_back({ours + ".bias", of_gguf + ".bias", Arrangement::as_it_is});
  };
  product("layer#.attention.in", "h.#.attn.c_attn", "blk.#.attn_qkv");
  product("layer#.attention.out", "h.#.attn.c_proj", "blk.#.attn_output");
  product("layer#.inner", "h.#.mlp.c_fc", "blk.#.ffn_up");
  product("layer#.outer", "h.#.mlp.c_proj", "blk.#.ffn_down");
  add(rules, "own_head.weight", {"lm_head.weight", "output.weight"}, Arrangement::transposed);
  return rules;
}

}  // namespace

std::span<const NameRule> llama_names() {
  static const Rules rules = make_llama_names();
  return rules;
}

// Buffers of old versions of transformers, which its newer ones make: the angles of positions, the triangle
// of what a token may see and the number that stands for what it may not.
std::span<const char* const> names_of_buffers() {
  static constexpr const char* names[] = {"rotary_emb.inv_freq", "layers.#.self_attn.rotary_emb.inv_freq",
                                          "h.#.attn.bias", "h.#.attn.masked_bias"};
  return names;
}

std::span<const NameRule> gpt2_names() {
  static const Rules rules = make_gpt2_names();
  return rules;
}

}  // namespace superstep::language
