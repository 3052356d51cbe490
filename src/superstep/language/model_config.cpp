#include "superstep/language/model_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/language/model_entries.h"

namespace superstep::language {
namespace {

using nlohmann::json;

constexpr std::int64_t largest_size = std::int64_t{1} << 32;

[[noreturn]] void refuse_entry(const std::string& where, const std::string& entry) {
  throw Error(ErrorCode::bad_file, fmt::format("'{}' is missing or no number in its range", entry), where);
}

[[noreturn]] void refuse_kind(const std::string& where, const std::string& kind) {
  throw Error(ErrorCode::unsupported,
              fmt::format("models of the kind '{}' are not continued", printable(kind)), where,
              "llama, mistral and gpt2 are");
}

// One of several spellings; `otherwise` below 0: there must be one.
std::int64_t integer_of(const json& object, std::initializer_list<const char*> names,
                        const std::string& where, std::int64_t otherwise = -1) {
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) continue;
    if (!found->is_number_integer() || *found < 1 || *found > largest_size) refuse_entry(where, name);
    return found->get<std::int64_t>();
  }
  if (otherwise < 0) refuse_entry(where, *names.begin());
  return otherwise;
}

double number_of(const json& object, const char* name, const std::string& where, double otherwise) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return otherwise;
  if (!found->is_number() || !(*found > 0)) refuse_entry(where, name);
  return found->get<double>();
}

bool truth_of(const json& object, const char* name, const std::string& where, bool otherwise) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return otherwise;
  if (!found->is_boolean())
    throw Error(ErrorCode::bad_file, fmt::format("'{}' is neither true nor false", name), where);
  return found->get<bool>();
}

Holds holds(bool truth) { return truth ? Holds::yes : Holds::no; }

// Every number that the kind of scaling needs.
void read_scaling(const json& object, const std::string& kind, RotaryScaling& s, const std::string& where) {
  const auto needed = [&](const char* name) {
    if (!object.contains(name)) refuse_entry(where, name);
    return number_of(object, name, where, 0);
  };
  if (kind != "linear" && kind != "llama3")
    throw Error(ErrorCode::unsupported,
                fmt::format("positions scaled by '{}' are not known", printable(kind)), where,
                "linear and llama3 are");
  s.factor = needed("factor");
  s.kind = kind == "linear" ? RotaryScaling::Kind::linear : RotaryScaling::Kind::llama3;
  if (kind == "linear") return;
  s.low = needed("low_freq_factor");
  s.high = needed("high_freq_factor");
  s.original_length = needed("original_max_position_embeddings");
  if (s.low >= s.high) refuse_entry(where, "high_freq_factor");
}

// Newer files say everything about positions in rope_parameters, older ones in rope_theta and rope_scaling.
void read_rotary(const json& object, ModelConfig& config, const std::string& where) {
  config.rotary_base = number_of(object, "rope_theta", where, 10000);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) continue;
    if (!found->is_object()) refuse_entry(where, name);
    config.rotary_base = number_of(*found, "rope_theta", where, config.rotary_base);
    const std::string kind = found->value("rope_type", found->value("type", std::string("default")));
    require_known_rotary_entries(*found, where);
    if (kind != "default") read_scaling(*found, kind, config.scaling, where);
  }
}

void read_ends(const json& object, ModelConfig& config) {
  const auto found = object.find("eos_token_id");
  if (found == object.end()) return;
  if (found->is_number_integer()) config.ends.push_back(found->get<std::int64_t>());
  if (found->is_array())
    for (const json& each : *found)
      if (each.is_number_integer()) config.ends.push_back(each.get<std::int64_t>());
}

void check(const ModelConfig& c, const std::string& where) {
  if (c.heads % c.key_heads != 0 || c.head_size % 2 != 0 || c.heads * c.head_size > largest_size)
    throw Error(ErrorCode::bad_file,
                fmt::format("{} heads of {} with {} key heads do not fit each other", c.heads, c.head_size,
                            c.key_heads),
                where);
  if (c.heads * c.head_size != c.width)
    throw Error(ErrorCode::unsupported,
                fmt::format("{} heads of {} do not make the width of {}", c.heads, c.head_size, c.width),
                where);
}

// A text that is longer than the window is refused: within it every token sees all before it.
void read_window(const json& object, ModelConfig& c, const std::string& where, std::int64_t otherwise) {
  if (!object.contains("sliding_window"))
    c.context = std::min(c.context, otherwise);
  else if (!object["sliding_window"].is_null())
    c.context = std::min(c.context, integer_of(object, {"sliding_window"}, where));
  const auto kinds = object.find("layer_types");
  if (kinds == object.end() || kinds->is_null()) return;
  for (const json& kind : *kinds)
    if (kind != "full_attention" && kind != "sliding_attention")
      throw Error(ErrorCode::unsupported,
                  fmt::format("layers of the kind {} are not known", printable(kind.dump())), where);
}

// What an entry is that is not there: transformers' LlamaConfig and MistralConfig say so.
ModelConfig of_llama(const json& object, const std::string& where, bool mistral) {
  constexpr std::int64_t mistral_window = 4096, mistral_context = 131072;
  ModelConfig c{.family = Family::llama};
  c.layers = integer_of(object, {"num_hidden_layers"}, where);
  c.width = integer_of(object, {"hidden_size"}, where);
  c.heads = integer_of(object, {"num_attention_heads"}, where);
  c.key_heads = integer_of(object, {"num_key_value_heads"}, where, mistral ? 8 : c.heads);
  c.head_size = integer_of(object, {"head_dim"}, where, c.width / c.heads);
  c.inner = integer_of(object, {"intermediate_size"}, where);
  c.context = integer_of(object, {"max_position_embeddings"}, where, mistral ? mistral_context : 2048);
  c.vocabulary = integer_of(object, {"vocab_size"}, where);
  c.epsilon = number_of(object, "rms_norm_eps", where, 1e-6);
  if (object.value("hidden_act", "silu") != "silu")
    refuse_kind(where, "llama with " + object.value("hidden_act", ""));
  read_window(object, c, where, mistral ? mistral_window : c.context);
  read_rotary(object, c, where);
  c.attention_biases = holds(truth_of(object, "attention_bias", where, false));
  c.inner_biases = holds(truth_of(object, "mlp_bias", where, false));
  c.head = holds(!truth_of(object, "tie_word_embeddings", where, false));
  return c;
}

ModelConfig of_gpt2(const json& object, const std::string& where) {
  ModelConfig c{.family = Family::gpt2};
  c.layers = integer_of(object, {"n_layer"}, where);
  c.width = integer_of(object, {"n_embd"}, where);
  c.heads = c.key_heads = integer_of(object, {"n_head"}, where);
  c.head_size = c.width / c.heads;
  c.inner = integer_of(object, {"n_inner"}, where, 4 * c.width);
  c.context = integer_of(object, {"n_positions", "n_ctx"}, where);
  c.vocabulary = integer_of(object, {"vocab_size"}, where);
  c.epsilon = number_of(object, "layer_norm_epsilon", where, 1e-5);
  const std::string activation = object.value("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    refuse_kind(where, "gpt2 with " + activation);
  c.head = holds(!truth_of(object, "tie_word_embeddings", where, true));
  return c;
}

class Notes {
 public:
  Notes(const data::WeightFile& file, std::string kind) : file_(file), kind_(std::move(kind)) {}

  bool has(const std::string& name) const { return find(name) != nullptr; }
  std::int64_t integer(const std::string& name, std::int64_t otherwise = -1) const {
    const data::WeightNote* note = find(name);
    if (!note && otherwise >= 0) return otherwise;
    const auto* value = note ? std::get_if<std::int64_t>(note) : nullptr;
    if (!value || *value < 1 || *value > largest_size) refuse(name);
    return *value;
  }
  double number(const std::string& name, double otherwise) const {
    const data::WeightNote* note = find(name);
    if (!note) return otherwise;
    const auto* whole = std::get_if<std::int64_t>(note);
    const auto* value = std::get_if<double>(note);
    if (!whole && !value) refuse(name);
    const double number = whole ? static_cast<double>(*whole) : *value;
    if (!(number > 0)) refuse(name);
    return number;
  }
  std::string text(const std::string& name) const {
    const data::WeightNote* note = find(name);
    if (!note) return "";
    const auto* value = std::get_if<std::string>(note);
    if (!value) refuse(name);
    return *value;
  }
  // Where only one value is honored.
  void require_equal(const std::string& name, std::int64_t honored) const {
    if (const std::int64_t value = integer(name, honored); value != honored)
      throw Error(ErrorCode::unsupported,
                  fmt::format("'{}.{}' is {}, where only {} is honored", kind_, name, value, honored),
                  file_.path().string());
  }

 private:
  const data::WeightNote* find(const std::string& name) const {
    const auto found = file_.notes().find(kind_ + "." + name);
    return found == file_.notes().end() ? nullptr : &found->second;
  }
  [[noreturn]] void refuse(const std::string& name) const {
    refuse_entry(file_.path().string(), kind_ + "." + name);
  }

  const data::WeightFile& file_;
  std::string kind_;
};

// A factor without a kind scales linearly, and has an older name, too: as llama.cpp reads them.
RotaryScaling scaling_of(const Notes& notes, const std::string& where) {
  const std::string kind = notes.text("rope.scaling.type");
  if (kind == "none") return {};
  if (!kind.empty() && kind != "linear")
    throw Error(ErrorCode::unsupported,
                fmt::format("positions scaled by '{}' are not known", printable(kind)), where,
                "linear is, and llama3 in a config.json");
  const double factor = notes.number("rope.scaling.factor", notes.number("rope.scale_linear", 1));
  if (factor == 1) return {};
  return {.kind = RotaryScaling::Kind::linear, .factor = factor};
}

void read_sizes(const Notes& notes, ModelConfig& c) {
  c.layers = notes.integer("block_count");
  c.width = notes.integer("embedding_length");
  c.heads = notes.integer("attention.head_count");
  c.key_heads = notes.integer("attention.head_count_kv", c.heads);
  c.head_size = notes.integer("attention.key_length", c.width / c.heads);
  c.inner = notes.integer("feed_forward_length");
  c.context = notes.integer("context_length");
  c.context = std::min(c.context, notes.integer("attention.sliding_window", c.context));
  c.vocabulary = notes.has("vocab_size") ? notes.integer("vocab_size") : 0;
  notes.require_equal("attention.value_length", c.head_size);
  notes.require_equal("rope.dimension_count", c.head_size);
}

ModelConfig of_gguf(const data::WeightFile& file) {
  const std::string where = file.path().string(), kind = Notes(file, "general").text("architecture");
  if (kind != "llama" && kind != "gpt2") refuse_kind(where, kind);
  require_known_notes(file, kind);
  const Notes notes(file, kind);
  ModelConfig c{.family = kind == "llama" ? Family::llama : Family::gpt2};
  read_sizes(notes, c);
  c.attention_biases = c.inner_biases = Holds::as_the_file_has;
  c.epsilon = notes.number(
      kind == "llama" ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5);
  c.rotary_base = notes.number("rope.freq_base", 10000);
  c.scaling = scaling_of(notes, where);
  if (const data::Weight* factors = file.find("rope_freqs.weight"))
    throw Error(ErrorCode::unsupported, fmt::format("'{}' scales positions pair by pair", factors->name),
                where, "take the safetensors of the same model");
  const auto end = file.notes().find("tokenizer.ggml.eos_token_id");
  if (end != file.notes().end() && std::holds_alternative<std::int64_t>(end->second))
    c.ends.push_back(std::get<std::int64_t>(end->second));
  check(c, where);
  return c;
}

}  // namespace

const char* name_of(Family family) { return family == Family::llama ? "llama" : "gpt2"; }

ModelConfig model_config_from_json(std::string_view text, const std::string& where) {
  const json object = parse_json(text);
  if (!object.is_object()) throw Error(ErrorCode::bad_file, "this is no JSON object", where);
  try {
    const std::string kind = object.value("model_type", std::string());
    if (kind != "llama" && kind != "mistral" && kind != "gpt2") refuse_kind(where, kind);
    require_known_entries(object, kind, where);
    ModelConfig config = kind == "gpt2" ? of_gpt2(object, where) : of_llama(object, where, kind == "mistral");
    read_ends(object, config);
    check(config, where);
    return config;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("an entry is of another kind: {}", error.what()), where);
  }
}

namespace {

// Sizes that the file's own arrays cannot hold: said before anything is looked up, or allocated, by them.
void require_room_for(const ModelConfig& c, const data::WeightFile& file) {
  const auto arrays = static_cast<std::int64_t>(file.weights().size());
  if (c.layers > arrays)
    throw Error(ErrorCode::bad_file,
                fmt::format("{} layers are said, and the file has {} arrays in all", c.layers, arrays),
                file.path().string());
  std::int64_t most = 0;
  for (const data::Weight& weight : file.weights()) most = std::max(most, weight.shape.element_count());
  for (const std::int64_t size : {c.width, c.inner, c.vocabulary})
    if (size > most)
      throw Error(ErrorCode::bad_file,
                  fmt::format("a size of {} is said, and no array has more than {} elements", size, most),
                  file.path().string());
}

}  // namespace

ModelConfig model_config(const data::WeightFile& file) {
  if (file.format() == "GGUF") {
    const ModelConfig config = of_gguf(file);
    require_room_for(config, file);
    return config;
  }
  const std::filesystem::path path = file.path().parent_path() / "config.json";
  if (!std::filesystem::exists(path))
    throw Error(ErrorCode::not_found, "the sizes of the model are not known", path.string(),
                "put the model's config.json beside its weights");
  const ModelConfig config = model_config_from_json(read_text_file(path), path.string());
  require_room_for(config, file);
  return config;
}

}  // namespace superstep::language
