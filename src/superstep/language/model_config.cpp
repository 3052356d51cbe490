#include "superstep/language/model_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"

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

// Newer files say everything about positions in rope_parameters, older ones in rope_theta and rope_scaling.
void read_rotary(const json& object, ModelConfig& config, const std::string& where) {
  config.rotary_base = number_of(object, "rope_theta", where, 10000);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_object()) continue;
    config.rotary_base = number_of(*found, "rope_theta", where, config.rotary_base);
    const std::string kind = found->value("rope_type", found->value("type", std::string("default")));
    if (kind == "default") continue;
    RotaryScaling& s = config.scaling;
    if (kind == "linear")
      s.kind = RotaryScaling::Kind::linear;
    else if (kind == "llama3")
      s.kind = RotaryScaling::Kind::llama3;
    else
      throw Error(ErrorCode::unsupported,
                  fmt::format("positions scaled by '{}' are not known", printable(kind)), where,
                  "linear and llama3 are");
    s.factor = number_of(*found, "factor", where, 1);
    s.low = number_of(*found, "low_freq_factor", where, s.low);
    s.high = number_of(*found, "high_freq_factor", where, s.high);
    s.original_length = number_of(*found, "original_max_position_embeddings", where, s.original_length);
    if (s.low >= s.high) refuse_entry(where, "high_freq_factor");
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

ModelConfig of_llama(const json& object, const std::string& where) {
  ModelConfig c{.family = Family::llama};
  c.layers = integer_of(object, {"num_hidden_layers"}, where);
  c.width = integer_of(object, {"hidden_size"}, where);
  c.heads = integer_of(object, {"num_attention_heads"}, where);
  c.key_heads = integer_of(object, {"num_key_value_heads"}, where, c.heads);
  c.head_size = integer_of(object, {"head_dim"}, where, c.width / c.heads);
  c.inner = integer_of(object, {"intermediate_size"}, where);
  c.context = integer_of(object, {"max_position_embeddings"}, where, 2048);
  c.vocabulary = integer_of(object, {"vocab_size"}, where);
  c.epsilon = number_of(object, "rms_norm_eps", where, 1e-5);
  if (object.value("hidden_act", "silu") != "silu")
    refuse_kind(where, "llama with " + object.value("hidden_act", ""));
  if (object.contains("sliding_window") && object["sliding_window"].is_number_integer())
    c.context = std::min(c.context, integer_of(object, {"sliding_window"}, where));
  read_rotary(object, c, where);
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
  return c;
}

class Notes {
 public:
  Notes(const data::WeightFile& file, std::string kind) : file_(file), kind_(std::move(kind)) {}

  std::int64_t integer(const std::string& name, std::int64_t otherwise = -1) const {
    const auto* value = find<std::int64_t>(name);
    if (value && *value >= 1 && *value <= largest_size) return *value;
    if (value || otherwise < 0) refuse_entry(file_.path().string(), kind_ + "." + name);
    return otherwise;
  }
  double number(const std::string& name, double otherwise) const {
    const auto* value = find<double>(name);
    if (value && !(*value > 0)) refuse_entry(file_.path().string(), kind_ + "." + name);
    return value ? *value : otherwise;
  }
  std::string text(const std::string& name) const {
    const auto* value = find<std::string>(name);
    return value ? *value : "";
  }

 private:
  template <class T>
  const T* find(const std::string& name) const {
    const auto found = file_.notes().find(kind_ + "." + name);
    return found == file_.notes().end() ? nullptr : std::get_if<T>(&found->second);
  }

  const data::WeightFile& file_;
  std::string kind_;
};

ModelConfig of_gguf(const data::WeightFile& file) {
  const std::string where = file.path().string(), kind = Notes(file, "general").text("architecture");
  if (kind != "llama" && kind != "gpt2") refuse_kind(where, kind);
  const Notes notes(file, kind);
  ModelConfig c{.family = kind == "llama" ? Family::llama : Family::gpt2};
  c.layers = notes.integer("block_count");
  c.width = notes.integer("embedding_length");
  c.heads = notes.integer("attention.head_count");
  c.key_heads = notes.integer("attention.head_count_kv", c.heads);
  c.head_size = notes.integer("attention.key_length", c.width / c.heads);
  c.inner = notes.integer("feed_forward_length");
  c.context = notes.integer("context_length");
  c.epsilon = notes.number(
      kind == "llama" ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5);
  c.rotary_base = notes.number("rope.freq_base", 10000);
  const std::string scaling = notes.text("rope.scaling.type");
  if (scaling == "linear")
    c.scaling = {.kind = RotaryScaling::Kind::linear, .factor = notes.number("rope.scaling.factor", 1)};
  else if (!scaling.empty() && scaling != "none")
    throw Error(ErrorCode::unsupported,
                fmt::format("positions scaled by '{}' are not known", printable(scaling)), where);
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
    ModelConfig config = kind == "gpt2" ? of_gpt2(object, where) : of_llama(object, where);
    read_ends(object, config);
    check(config, where);
    return config;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("an entry is of another kind: {}", error.what()), where);
  }
}

ModelConfig model_config(const data::WeightFile& file) {
  if (file.format() == "GGUF") return of_gguf(file);
  const std::filesystem::path path = file.path().parent_path() / "config.json";
  if (!std::filesystem::exists(path))
    throw Error(ErrorCode::not_found, "the sizes of the model are not known", path.string(),
                "put the model's config.json beside its weights");
  return model_config_from_json(read_text_file(path), path.string());
}

}  // namespace superstep::language
