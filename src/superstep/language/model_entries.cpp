#include "superstep/language/model_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/base/text.h"

namespace superstep::language {
namespace {

using nlohmann::json;

// An entry that model_config.cpp reads, or that changes no score, or that must have one value.
struct KnownEntry {
  std::string_view name;
  const char* only = nullptr;  // JSON: any other value would be another model; null: any value
};

// Of transformers' configurations of all kinds: how a model was made, is kept in memory, or is sampled.
constexpr KnownEntry of_every_config[] = {
    {"model_type"},
    {"vocab_size"},
    {"eos_token_id"},
    {"tie_word_embeddings"},
    {"architectures"},
    {"torch_dtype"},
    {"dtype"},
    {"transformers_version"},
    {"_name_or_path"},
    {"_commit_hash"},
    {"_attn_implementation"},
    {"_attn_implementation_autoset"},
    {"attn_implementation"},
    {"unsloth_version"},
    {"unsloth_fixed"},
    {"transformers.js_config"},
    {"use_cache"},
    {"initializer_range"},
    {"bos_token_id"},
    {"pad_token_id"},
    {"sep_token_id"},
    {"decoder_start_token_id"},
    {"gradient_checkpointing"},
    {"task_specific_params"},
    {"id2label"},
    {"label2id"},
    {"num_labels"},
    {"problem_type"},
    {"finetuning_task"},
    {"tokenizer_class"},
    {"prefix"},
    {"return_dict"},
    {"output_hidden_states"},
    {"output_attentions"},
    {"output_past"},
    {"output_scores"},
    {"return_dict_in_generate"},
    {"torchscript"},
    {"use_bfloat16"},
    {"tf_legacy_loss"},
    {"is_decoder"},
    {"tie_encoder_decoder"},
    {"chunk_size_feed_forward"},
    {"max_length"},
    {"min_length"},
    {"do_sample"},
    {"early_stopping"},
    {"num_beams"},
    {"num_beam_groups"},
    {"diversity_penalty"},
    {"temperature"},
    {"top_k"},
    {"top_p"},
    {"typical_p"},
    {"repetition_penalty"},
    {"length_penalty"},
    {"no_repeat_ngram_size"},
    {"encoder_no_repeat_ngram_size"},
    {"num_return_sequences"},
    {"remove_invalid_values"},
    {"is_encoder_decoder", "false"},
    {"add_cross_attention", "false"},
    {"pruned_heads", "{}"},
};

constexpr KnownEntry of_llama_config[] = {
    {"num_hidden_layers"},
    {"hidden_size"},
    {"num_attention_heads"},
    {"num_key_value_heads"},
    {"head_dim"},
    {"intermediate_size"},
    {"max_position_embeddings"},
    {"rms_norm_eps"},
    {"hidden_act"},
    {"sliding_window"},
    {"layer_types"},
    {"rope_theta"},
    {"rope_scaling"},
    {"rope_parameters"},
    {"attention_bias"},
    {"mlp_bias"},
    {"attention_dropout"},
    {"pretraining_tp"},       // cuts of the products, whose sums are the same
    {"max_sequence_length"},  // of the authors' training
    {"is_llama_config"},
    {"rope_interleaved", "false"},
    {"partial_rotary_factor", "1"},
};

constexpr KnownEntry of_gpt2_config[] = {
    {"n_layer"},
    {"n_embd"},
    {"n_head"},
    {"n_inner"},
    {"n_positions"},
    {"n_ctx"},
    {"layer_norm_epsilon"},
    {"activation_function"},
    {"attn_pdrop"},
    {"embd_pdrop"},
    {"resid_pdrop"},
    {"summary_activation"},  // of another head than the one that goes on with a text
    {"summary_first_dropout"},
    {"summary_proj_to_labels"},
    {"summary_type"},
    {"summary_use_proj"},
    {"reorder_and_upcast_attn"},  // in which precision scores are made
    {"scale_attn_weights", "true"},
    {"scale_attn_by_inverse_layer_idx", "false"},
};

constexpr KnownEntry of_rotary[] = {
    {"rope_type"},
    {"type"},
    {"rope_theta"},
    {"factor"},
    {"low_freq_factor"},
    {"high_freq_factor"},
    {"original_max_position_embeddings"},
    {"partial_rotary_factor", "1"},
};

// Behind the architecture's name, as the specification of GGUF lists them.
constexpr KnownEntry of_gguf_models[] = {
    {"block_count"},
    {"embedding_length"},
    {"feed_forward_length"},
    {"context_length"},
    {"vocab_size"},
    {"attention.head_count"},
    {"attention.head_count_kv"},
    {"attention.key_length"},
    {"attention.value_length"},
    {"attention.layer_norm_epsilon"},
    {"attention.layer_norm_rms_epsilon"},
    {"attention.sliding_window"},
    {"rope.dimension_count"},
    {"rope.freq_base"},
    {"rope.scaling.type"},
    {"rope.scaling.factor"},
    {"rope.scale_linear"},
    {"rope.scaling.finetuned"},
    {"rope.scaling.original_context_length"},  // of kinds of scaling that are refused
    {"tensor_data_layout"},
    {"rope.scaling.attn_factor", "1"},
    {"attention.causal", "1"},
    {"attention.max_alibi_bias", "0"},
    {"attention.clamp_kqv", "0"},
    {"use_parallel_residual", "0"},
    {"expert_count", "0"},
    {"expert_used_count", "0"},
};

// Whole names: what another kind of file would say.
constexpr KnownEntry of_gguf_files[] = {{"general.type", "\"model\""}, {"split.count", "1"}};

const KnownEntry* find(std::span<const KnownEntry> entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &KnownEntry::name);
  return found == entries.end() ? nullptr : &*found;
}

std::string shown(const std::string& name, const json& value) {
  constexpr std::size_t most = 60;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > most) text = text.substr(0, most) + "...";
  return fmt::format("{} = {}", printable(name), printable(text));
}

// Empty: it is known, and has a value that is honored.
std::string unknown(const std::string& name, const json& value,
                    std::initializer_list<std::span<const KnownEntry>> tables) {
  if (value.is_null()) return {};  // transformers writes it for what a model does not have
  for (const std::span<const KnownEntry> table : tables)
    if (const KnownEntry* entry = find(table, name))
      return !entry->only || value == parse_json(entry->only)
                 ? std::string()
                 : fmt::format("{} (only {} is)", shown(name, value), entry->only);
  return shown(name, value);
}

void refuse(const std::vector<std::string>& entries, const std::string& where, const char* hint) {
  if (entries.empty()) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("the model is not computed by all that is said of it; not honored: {}",
                          join(entries, "; ")),
              where, hint);
}

void require_known(const json& object, std::initializer_list<std::span<const KnownEntry>> tables,
                   const std::string& where) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : object.items())
    if (std::string entry = unknown(name, value, tables); !entry.empty()) entries.push_back(std::move(entry));
  refuse(entries, where, "take an entry out that does not change the model's scores");
}

json as_json(const data::WeightNote& note) {
  return std::visit([](const auto& value) { return json(value); }, note);
}

}  // namespace

void require_known_entries(const json& config, const std::string& kind, const std::string& where) {
  const std::span<const KnownEntry> own =
      kind == "gpt2" ? std::span<const KnownEntry>(of_gpt2_config) : of_llama_config;
  require_known(config, {of_every_config, own}, where);
}

void require_known_rotary_entries(const json& rotary, const std::string& where) {
  require_known(rotary, {of_rotary}, where);
}

void require_known_notes(const data::WeightFile& file, const std::string& kind) {
  const std::string prefix = kind + ".";
  std::vector<std::string> entries;
  for (const auto& [name, note] : file.notes()) {
    std::string entry;
    if (name.starts_with(prefix))
      entry = unknown(name.substr(prefix.size()), as_json(note), {of_gguf_models});
    else if (find(of_gguf_files, name))
      entry = unknown(name, as_json(note), {of_gguf_files});
    else if (name.starts_with("adapter."))
      entry = shown(name, as_json(note));
    if (!entry.empty()) entries.push_back(std::move(entry));
  }
  refuse(entries, file.path().string(), "take the model in a form that needs none of it");
}

}  // namespace superstep::language
