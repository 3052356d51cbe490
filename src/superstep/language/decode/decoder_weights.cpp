#include "superstep/language/decode/decoder_weights.h"

#include <fmt/format.h>

#include <set>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/language/names.h"

namespace superstep::language {
namespace {

using data::Arrangement;

class Finder {
 public:
  Finder(const data::WeightFile& file, Family family)
      : file_(file), named_(file), rules_(family == Family::llama ? llama_names() : gpt2_names()) {}

  // [features, in], whichever way round the file has it.
  Matrix product(const std::string& name, std::int64_t features, std::int64_t in) {
    const data::FoundWeight found = find(name, Shape{features, in}, /*turned=*/true);
    if (!found.weight) return {};
    const Arrangement held = found.rule->arrangement;
    if (held == Arrangement::query_pairs || held == Arrangement::key_pairs) pairs_ = true;
    if (held != Arrangement::as_it_is) return matrix_of(*found.weight);
    const data::NameRule turning{.ours = {}, .theirs = {}, .arrangement = Arrangement::transposed};
    return matrix_of(data::arranged(turning, *found.weight, 0));
  }

  Matrix table(const std::string& name, std::int64_t rows, std::int64_t columns) {
    const data::FoundWeight found = find(name, Shape{rows, columns}, false);
    return found.weight ? matrix_of(*found.weight) : Matrix{};
  }

  Numbers numbers(const std::string& name, std::int64_t count) {
    const data::FoundWeight found = find(name, Shape{count}, false);
    if (!found.weight) return {};
    const Tensor tensor = found.weight->tensor().converted(ElementType::f32);
    const auto values = tensor.as<float>();
    return {values.begin(), values.end()};
  }

  Linear linear(const std::string& name, std::int64_t features, std::int64_t in, Holds bias) {
    return {product(name + ".weight", features, in),
            has(bias, name + ".bias") ? numbers(name + ".bias", features) : Numbers{}};
  }
  Norm norm(const std::string& name, std::int64_t width, bool has_bias) {
    return {numbers(name + ".weight", width), has_bias ? numbers(name + ".bias", width) : Numbers{}};
  }

  bool has(Holds holds, const std::string& name) const {
    return holds == Holds::as_the_file_has ? data::find_weight(named_, rules_, name).weight != nullptr
                                           : holds == Holds::yes;
  }

  // How many rows an array has, where the sizes of the model do not say.
  std::int64_t rows_of(const std::string& name) const {
    const data::FoundWeight found = data::find_weight(named_, rules_, name);
    return found.weight && found.weight->shape.rank() == 2 ? found.weight->shape[0] : 0;
  }

  bool pairs() const { return pairs_; }

  void refuse_differences() const {
    if (differences_.empty()) return;
    std::string list;
    for (const std::string& each : differences_) list += "\n  " + each;
    throw Error(ErrorCode::bad_file,
                fmt::format("the weights do not fit the model's sizes: {} arrays differ{}\n",
                            differences_.size(), list),
                file_.path().string());
  }

  // Scores without them would be another model's.
  void refuse_unused() const {
    constexpr std::size_t most_names = 8;
    const std::vector<const data::Weight*> unused = data::unused_weights(file_, used_, names_of_buffers());
    if (unused.empty()) return;
    std::vector<std::string> names;
    for (const data::Weight* weight : unused)
      if (names.size() < most_names)
        names.push_back(fmt::format("{} {}", printable(weight->name), to_string(weight->shape)));
    if (unused.size() > most_names) names.push_back(fmt::format("{} more", unused.size() - most_names));
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the file has {} that the model has no use for: {}",
                    unused.size() == 1 ? "an array" : fmt::format("{} arrays", unused.size()),
                    join(names, ", ")),
        file_.path().string(),
        "its scores would be those of another model: take one of the forms that docs/language.md lists");
  }

 private:
  // `turned`: the model's own order is [in, features], and `shape` is the other way round.
  data::FoundWeight find(const std::string& name, const Shape& shape, bool turned) {
    data::FoundWeight found = data::find_weight(named_, rules_, name);
    if (!found.weight) {
      differences_.push_back(
          fmt::format("{} {} is missing: no {}", name, to_string(shape), join(found.looked_for, " or ")));
      return found;
    }
    const bool other_way = turned && found.rule->arrangement == Arrangement::as_it_is;
    const Shape wanted = other_way ? Shape{shape[1], shape[0]} : shape;
    used_.insert(found.weight);
    if (found.weight->shape == wanted) return found;
    differences_.push_back(fmt::format("{} is {} in the file, not {}", printable(found.weight->name),
                                       to_string(found.weight->shape), to_string(wanted)));
    return {};
  }

  const data::WeightFile& file_;
  data::NamedWeights named_;
  std::span<const data::NameRule> rules_;
  std::vector<std::string> differences_;
  std::set<const data::Weight*> used_;
  bool pairs_ = false;
};

LayerWeights llama_layer(Finder& finder, const ModelConfig& c, const std::string& name) {
  const std::int64_t keys = c.key_heads * c.head_size;
  LayerWeights layer;
  layer.before_attention = finder.norm(name + ".attention.norm", c.width, false);
  layer.in.push_back(finder.linear(name + ".attention.query", c.width, c.width, c.attention_biases));
  layer.in.push_back(finder.linear(name + ".attention.key", keys, c.width, c.attention_biases));
  layer.in.push_back(finder.linear(name + ".attention.value", keys, c.width, c.attention_biases));
  layer.out = finder.linear(name + ".attention.out", c.width, c.width, c.attention_biases);
  layer.before_inner = finder.norm(name + ".norm", c.width, false);
  layer.inner.push_back(finder.linear(name + ".gate", c.inner, c.width, c.inner_biases));
  layer.inner.push_back(finder.linear(name + ".inner", c.inner, c.width, c.inner_biases));
  layer.outer = finder.linear(name + ".outer", c.width, c.inner, c.inner_biases);
  return layer;
}

LayerWeights gpt2_layer(Finder& finder, const ModelConfig& c, const std::string& name) {
  LayerWeights layer;
  layer.before_attention = finder.norm(name + ".attention.norm", c.width, true);
  layer.in.push_back(finder.linear(name + ".attention.in", 3 * c.width, c.width, Holds::yes));
  layer.out = finder.linear(name + ".attention.out", c.width, c.width, Holds::yes);
  layer.before_inner = finder.norm(name + ".norm", c.width, true);
  layer.inner.push_back(finder.linear(name + ".inner", c.inner, c.width, Holds::yes));
  layer.outer = finder.linear(name + ".outer", c.width, c.inner, Holds::yes);
  return layer;
}

}  // namespace

DecoderWeights decoder_weights(const data::WeightFile& file, const ModelConfig& config) {
  Finder finder(file, config.family);
  const bool llama = config.family == Family::llama;
  const std::int64_t words =
      config.vocabulary > 0 ? config.vocabulary : finder.rows_of("embeddings.word.weight");
  DecoderWeights weights;
  weights.words = finder.table("embeddings.word.weight", words, config.width);
  if (!llama) weights.positions = finder.table("embeddings.position.weight", config.context, config.width);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string name = fmt::format("layer{}", i);
    weights.layers.push_back(llama ? llama_layer(finder, config, name) : gpt2_layer(finder, config, name));
  }
  weights.norm = finder.norm("norm", config.width, !llama);
  weights.head = finder.has(config.head, "own_head.weight")
                     ? finder.product("own_head.weight", words, config.width)
                     : weights.words;
  finder.refuse_differences();
  finder.refuse_unused();
  weights.pairs_are_neighbours = finder.pairs();
  return weights;
}

}  // namespace superstep::language
