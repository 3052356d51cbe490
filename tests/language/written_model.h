// Small Llamas written by a test, as GGUF or as Hugging Face's folder, and what they say by loops over
// doubles.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "superstep/base/file.h"
#include "superstep/file/safetensors.h"
#include "superstep/file/weights/weight_file.h"

namespace superstep::language {

using Arrays = std::map<std::string, Tensor>;  // by Hugging Face's names, without "model."

inline Arrays arrays_of(const std::filesystem::path& model) {
  Arrays arrays;
  const data::WeightFile file = data::WeightFile::open(model);
  for (const data::Weight& weight : file.weights()) {
    const std::string name = weight.name.starts_with("model.") ? weight.name.substr(6) : weight.name;
    arrays.emplace(name, weight.tensor().converted(ElementType::f32));
  }
  return arrays;
}

// The sizes of tests/language/models/llama.
struct LlamaSizes {
  std::int64_t layers = 2, width = 16, heads = 4, key_heads = 2, head_size = 4, inner = 24, vocabulary = 384;
  double epsilon = 1e-6, base = 10000;
};

// y = x W' + b, where there is such a bias.
inline std::vector<double> multiplied(const Arrays& arrays, const std::string& name,
                                      const std::vector<double>& x) {
  const Tensor& w = arrays.at(name + ".weight");
  const auto bias = arrays.find(name + ".bias");
  std::vector<double> y(static_cast<std::size_t>(w.shape()[0]));
  for (std::size_t row = 0; row < y.size(); ++row) {
    if (bias != arrays.end()) y[row] = bias->second.at(static_cast<std::int64_t>(row));
    for (std::size_t i = 0; i < x.size(); ++i)
      y[row] += w.at(static_cast<std::int64_t>(row * x.size() + i)) * x[i];
  }
  return y;
}

inline std::vector<double> normalized(const Arrays& arrays, const std::string& name, std::vector<double> x,
                                      double epsilon) {
  double square = 0;
  for (const double value : x) square += value * value;
  const double inverse = 1 / std::sqrt(square / static_cast<double>(x.size()) + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] *= inverse * arrays.at(name).at(static_cast<std::int64_t>(i));
  return x;
}

inline void turn_heads(std::vector<double>& x, std::int64_t heads, std::int64_t position,
                       const LlamaSizes& s) {
  const std::int64_t half = s.head_size / 2;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) *
                           std::pow(s.base, -2.0 * static_cast<double>(i) / static_cast<double>(s.head_size));
      double& a = x[static_cast<std::size_t>(h * s.head_size + i)];
      double& b = x[static_cast<std::size_t>(h * s.head_size + i + half)];
      const double was = a;
      a = was * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + was * std::sin(angle);
    }
}

using Vectors = std::vector<std::vector<double>>;  // of the tokens so far

// All heads of the last token over all keys.
inline std::vector<double> mixed(const std::vector<double>& query, const Vectors& keys, const Vectors& values,
                                 const LlamaSizes& s) {
  std::vector<double> all(query.size());
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const auto from = static_cast<std::size_t>(h * s.head_size);
    const auto key_from = static_cast<std::size_t>(h / (s.heads / s.key_heads) * s.head_size);
    std::vector<double> shares;
    double sum = 0;
    for (const auto& key : keys) {
      double score = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(s.head_size); ++i)
        score += query[from + i] * key[key_from + i];
      shares.push_back(std::exp(score / std::sqrt(static_cast<double>(s.head_size))));
      sum += shares.back();
    }
    for (std::size_t t = 0; t < values.size(); ++t)
      for (std::size_t i = 0; i < static_cast<std::size_t>(s.head_size); ++i)
        all[from + i] += shares[t] / sum * values[t][key_from + i];
  }
  return all;
}

inline void add_to(std::vector<double>& x, const std::vector<double>& more) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += more[i];
}

// The scores after the last token.
inline std::vector<double> scores_by_loops(const Arrays& arrays, const std::vector<std::int32_t>& tokens,
                                           const LlamaSizes& s = {}) {
  std::vector<Vectors> keys(static_cast<std::size_t>(s.layers)), values(keys.size());
  std::vector<double> x;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    x.assign(static_cast<std::size_t>(s.width), 0);
    for (std::int64_t i = 0; i < s.width; ++i)
      x[static_cast<std::size_t>(i)] = arrays.at("embed_tokens.weight").at(tokens[t] * s.width + i);
    for (std::int64_t layer = 0; layer < s.layers; ++layer) {
      const std::string name = fmt::format("layers.{}.", layer), attention = name + "self_attn.";
      const auto in = normalized(arrays, name + "input_layernorm.weight", x, s.epsilon);
      auto query = multiplied(arrays, attention + "q_proj", in),
           key = multiplied(arrays, attention + "k_proj", in);
      turn_heads(query, s.heads, static_cast<std::int64_t>(t), s);
      turn_heads(key, s.key_heads, static_cast<std::int64_t>(t), s);
      const auto l = static_cast<std::size_t>(layer);
      keys[l].push_back(key);
      values[l].push_back(multiplied(arrays, attention + "v_proj", in));
      add_to(x, multiplied(arrays, attention + "o_proj", mixed(query, keys[l], values[l], s)));
      const auto rest = normalized(arrays, name + "post_attention_layernorm.weight", x, s.epsilon);
      auto gate = multiplied(arrays, name + "mlp.gate_proj", rest);
      const auto inner = multiplied(arrays, name + "mlp.up_proj", rest);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= inner[i] / (1 + std::exp(-gate[i]));
      add_to(x, multiplied(arrays, name + "mlp.down_proj", gate));
    }
  }
  const std::string head = arrays.contains("lm_head.weight") ? "lm_head" : "embed_tokens";
  return multiplied(arrays, head, normalized(arrays, "norm.weight", x, s.epsilon));
}

// Hugging Face's folder.
inline void write_folder(const std::filesystem::path& folder, const Arrays& arrays,
                         const std::string& config) {
  std::filesystem::create_directories(folder);
  data::SafetensorsFile file;
  for (const auto& [name, tensor] : arrays)
    file.tensors.emplace(name.starts_with("lm_head") ? name : "model." + name, tensor);
  data::write_safetensors(folder / "model.safetensors", file);
  write_file_atomically(folder / "config.json", config);
}

using Note = std::variant<std::uint32_t, float, std::string>;

// The bytes of a GGUF file of f32, version 3.
class GgufWriter {
 public:
  void note(const std::string& name, const Note& value) {
    ++notes_;
    put_text(head_, name);
    static constexpr std::uint32_t kinds[] = {4, 6, 8};  // u32, f32, text
    put(head_, kinds[value.index()]);
    if (const auto* text = std::get_if<std::string>(&value)) return put_text(head_, *text);
    std::visit([&](const auto& number) { put(head_, number); }, value);
  }
  template <class T>
  void list(const std::string& name, const std::vector<T>& values) {
    ++notes_;
    put_text(head_, name);
    constexpr std::uint32_t list = 9, kind = std::is_same_v<T, std::string> ? 8
                                             : std::is_same_v<T, float>     ? 6
                                                                            : 4;
    put(head_, list);
    put(head_, kind);
    put(head_, static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) {
      if constexpr (std::is_same_v<T, std::string>)
        put_text(head_, value);
      else
        put(head_, value);
    }
  }
  void array(const std::string& name, const Tensor& tensor) {
    ++count_;
    put_text(places_, name);
    put(places_, static_cast<std::uint32_t>(tensor.shape().rank()));
    for (std::int64_t axis = tensor.shape().rank(); axis-- > 0;)
      put(places_, static_cast<std::uint64_t>(tensor.shape()[axis]));
    put(places_, std::uint32_t{0});
    put(places_, static_cast<std::uint64_t>(data_.size()));
    data_.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count());
    data_.append((32 - data_.size() % 32) % 32, '\0');
  }
  void write(const std::filesystem::path& path) const {
    std::string all = "GGUF";
    put(all, std::uint32_t{3});
    put(all, count_);
    put(all, notes_);
    all += head_ + places_;
    all.append((32 - all.size() % 32) % 32, '\0');
    write_file_atomically(path, all + data_);
  }

 private:
  template <class T>
  static void put(std::string& out, T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof value);
  }
  static void put_text(std::string& out, const std::string& text) {
    put(out, static_cast<std::uint64_t>(text.size()));
    out += text;
  }

  std::uint64_t count_ = 0, notes_ = 0;
  std::string head_, places_, data_;
};

// Rows of query and key heads (or their biases) with the two of a pair side by side.
inline Tensor with_neighbors(const Tensor& rows, std::int64_t head_size) {
  Tensor turned(ElementType::f32, rows.shape());
  const std::int64_t columns = rows.element_count() / rows.shape()[0], half = head_size / 2;
  for (std::int64_t r = 0; r < rows.shape()[0]; ++r) {
    const std::int64_t head = r / head_size, within = r % head_size;
    const std::int64_t from = head * head_size + (within % 2) * half + within / 2;
    for (std::int64_t c = 0; c < columns; ++c) turned.set(r * columns + c, rows.at(from * columns + c));
  }
  return turned;
}

inline std::string name_in_gguf(std::string name) {
  static const std::pair<const char*, const char*> parts[] = {{"layers.", "blk."},
                                                              {"self_attn.q_proj", "attn_q"},
                                                              {"self_attn.k_proj", "attn_k"},
                                                              {"self_attn.v_proj", "attn_v"},
                                                              {"self_attn.o_proj", "attn_output"},
                                                              {"mlp.gate_proj", "ffn_gate"},
                                                              {"mlp.up_proj", "ffn_up"},
                                                              {"mlp.down_proj", "ffn_down"},
                                                              {"input_layernorm", "attn_norm"},
                                                              {"embed_tokens", "token_embd"},
                                                              {"post_attention_layernorm", "ffn_norm"},
                                                              {"lm_head", "output"}};
  if (name == "norm.weight") return "output_norm.weight";
  for (const auto& [theirs, ours] : parts)
    if (const std::size_t at = name.find(theirs); at != std::string::npos)
      name.replace(at, std::string(theirs).size(), ours);
  return name;
}

inline GgufWriter gguf_of(const Arrays& arrays, const std::map<std::string, Note>& more = {},
                          const LlamaSizes& s = {}) {
  GgufWriter file;
  const auto size = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  std::map<std::string, Note> notes{
      {"general.architecture", "llama"},
      {"llama.block_count", size(s.layers)},
      {"llama.embedding_length", size(s.width)},
      {"llama.attention.head_count", size(s.heads)},
      {"llama.attention.head_count_kv", size(s.key_heads)},
      {"llama.feed_forward_length", size(s.inner)},
      {"llama.context_length", 64u},
      {"llama.attention.layer_norm_rms_epsilon", static_cast<float>(s.epsilon)}};
  for (const auto& [name, value] : more) notes.insert_or_assign(name, value);
  for (const auto& [name, value] : notes) file.note(name, value);
  for (const auto& [name, tensor] : arrays) {
    const bool in_pairs =
        name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
    file.array(name_in_gguf(name), in_pairs ? with_neighbors(tensor, s.head_size) : tensor);
  }
  return file;
}

}  // namespace superstep::language
