// Whatever a file says of a model or holds of it is computed, or refused by name.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/language/decode/decoder.h"
#include "tests/expect_error.h"
#include "tests/language/models.h"
#include "tests/language/written_model.h"
#include "tests/scratch.h"

namespace superstep::language {
namespace {

using Tokens = std::vector<std::int32_t>;

const Tokens some_tokens{1, 17, 300, 4, 4, 250, 33};

std::string config_of_llama(const std::string& entry = {}, const std::string& value = {}) {
  std::string config = read_text_file(models / "llama/config.json");
  if (entry.empty()) return config;
  const std::size_t at = config.find(fmt::format("  \"{}\":", entry));
  if (at != std::string::npos) config.erase(at, config.find('\n', at) + 1 - at);
  return config.insert(2, value.empty() ? "" : fmt::format("\"{}\": {},\n", entry, value));
}

Tensor random_bias(std::int64_t count, std::uint64_t seed) {
  Tensor bias(ElementType::f32, Shape{count});
  for (std::int64_t i = 0; i < count; ++i)
    bias.set(i, std::sin(static_cast<double>(i + 1) * static_cast<double>(seed + 1)));
  return bias;
}

Arrays with_biases(Arrays arrays, const std::vector<std::string>& parts) {
  std::uint64_t seed = 0;
  for (const std::string& part : parts)
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      const std::string name = layer + part;
      const std::int64_t rows = arrays.at(name + ".weight").shape()[0];
      arrays.insert_or_assign(name + ".bias", random_bias(rows, seed++));
    }
  return arrays;
}

const std::vector<std::string> of_attention{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                            "self_attn.o_proj"};
const std::vector<std::string> of_inner{"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"};

void expect_scores_by_loops(const std::filesystem::path& path, const Arrays& arrays) {
  const data::WeightFile file = data::WeightFile::open(path);
  Decoder decoder(file, model_config(file), {.threads = 2, .exact = true});
  const std::span<const float> scores = decoder.feed(some_tokens);
  const std::vector<double> truth = scores_by_loops(arrays, some_tokens);
  ASSERT_EQ(scores.size(), truth.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    largest = std::max(largest, std::abs(truth[i]));
    worst = std::max(worst, std::abs(truth[i] - static_cast<double>(scores[i])));
  }
  EXPECT_LT(worst, 1e-5 * largest);
}

// The loops themselves, on what transformers says.
TEST(WrittenModel, IsWhatTransformersComputes) {
  const Expected expected = expected_of("llama");
  const Arrays arrays = arrays_of(models / "llama");
  Tokens tokens;
  for (std::int64_t i = 0; i < expected.ids.shape()[1]; ++i)
    tokens.push_back(static_cast<std::int32_t>(expected.ids.at(i)));
  const std::vector<double> scores = scores_by_loops(arrays, tokens);
  const std::int64_t last = static_cast<std::int64_t>(tokens.size() - 1) * 384;
  for (std::int64_t v = 0; v < 384; ++v)
    EXPECT_NEAR(scores[static_cast<std::size_t>(v)], expected.logits.at(last + v), 1e-5) << v;
}

TEST(ModelEntries, BiasesOfHuggingFaceAreAdded) {
  const ScratchFolder folder;
  const Arrays plain = arrays_of(models / "llama"), attention = with_biases(plain, of_attention),
               inner = with_biases(plain, of_inner);
  write_folder(folder / "attention", attention, config_of_llama("attention_bias", "true"));
  write_folder(folder / "inner", inner, config_of_llama("mlp_bias", "true"));
  expect_scores_by_loops(folder / "attention", attention);
  expect_scores_by_loops(folder / "inner", inner);
}

TEST(ModelEntries, BiasesOfGgufAreAdded) {
  const ScratchFolder folder;
  const Arrays plain = arrays_of(models / "llama");
  const Arrays kinds[] = {plain,
                          with_biases(plain, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}),
                          with_biases(with_biases(plain, of_attention), of_inner)};
  for (const Arrays& arrays : kinds) {
    gguf_of(arrays).write(folder / "model.gguf");
    expect_scores_by_loops(folder / "model.gguf", arrays);
  }
}

TEST(ModelEntries, BiasesThatTheFileLacksOrTheConfigDoesNotKnowAreRefused) {
  const ScratchFolder folder;
  const Arrays plain = arrays_of(models / "llama"), biased = with_biases(plain, of_attention);
  const auto load = [&](const Arrays& arrays, const std::string& config) {
    write_folder(folder / "model", arrays, config);
    const data::WeightFile file = data::WeightFile::open(folder / "model");
    Decoder(file, model_config(file), {});
  };
  expect_error(ErrorCode::unsupported,
               {"8 arrays that the model has no use for", "model.layers.0.self_attn.k_proj.bias [8]"},
               [&] { load(biased, config_of_llama()); });
  expect_error(ErrorCode::bad_file, {"8 arrays differ", "no layers.0.self_attn.q_proj.bias"},
               [&] { load(plain, config_of_llama("attention_bias", "true")); });
}

TEST(ModelEntries, AnArrayMoreIsRefusedByNameUnlessItIsAKnownBuffer) {
  const ScratchFolder folder;
  const Arrays plain = arrays_of(models / "llama");
  const auto load = [&](const std::string& name, const Tensor& tensor) {
    Arrays arrays = plain;
    arrays.insert_or_assign(name, tensor);
    write_folder(folder / "model", arrays, config_of_llama());
    const data::WeightFile file = data::WeightFile::open(folder / "model");
    Decoder(file, model_config(file), {});
  };
  for (const char* name :
       {"layers.1.self_attn.q_norm.weight", "layers.0.block_sparse_moe.gate.weight",
        "layers.2.input_layernorm.weight", "layers.0.input_layernorm.bias", "score.weight"})
    expect_error(ErrorCode::unsupported, {name, "no use for"}, [&] { load(name, random_bias(4, 1)); });
  load("layers.0.self_attn.rotary_emb.inv_freq", random_bias(2, 1));
  load("embed.weight", plain.at("embed_tokens.weight"));  // the same once more
}

// Nothing is made by counts that the file's own arrays do not bear out: not a name, not a byte.
TEST(ModelEntries, CountsThatTheFileCannotHoldAreRefusedBeforeAnythingIsMadeByThem) {
  const ScratchFolder folder;
  const Arrays plain = arrays_of(models / "llama");
  for (const auto& [entry, part] : {std::pair("num_hidden_layers", "4294967296 layers are said"),
                                    {"intermediate_size", "a size of 4294967296 is said"},
                                    {"vocab_size", "a size of 4294967296 is said"}}) {
    nlohmann::json config = nlohmann::json::parse(config_of_llama());
    config[entry] = 4294967296;
    write_folder(folder / "model", plain, config.dump());
    const data::WeightFile file = data::WeightFile::open(folder / "model");
    expect_error(ErrorCode::bad_file, {part}, [&] { model_config(file); });
  }
}

TEST(ModelEntries, TheHeadIsTheOneThatTheConfigSays) {
  const ScratchFolder folder;
  Arrays arrays = arrays_of(models / "llama");
  write_folder(folder / "own", arrays, config_of_llama());
  expect_scores_by_loops(folder / "own", arrays);
  write_folder(folder / "both", arrays, config_of_llama("tie_word_embeddings", "true"));
  expect_error(ErrorCode::unsupported, {"lm_head.weight"},
               [&] { expect_scores_by_loops(folder / "both", arrays); });
  arrays.erase("lm_head.weight");
  write_folder(folder / "none", arrays, config_of_llama());
  expect_error(ErrorCode::bad_file, {"lm_head.weight"},
               [&] { expect_scores_by_loops(folder / "none", arrays); });
  write_folder(folder / "tied", arrays, config_of_llama("tie_word_embeddings", "true"));
  expect_scores_by_loops(folder / "tied", arrays);
}

TEST(ModelEntries, AnUnknownEntryOfAConfigIsRefusedWithItsValue) {
  const auto config = [](const char* entry, const char* value) {
    return model_config_from_json(config_of_llama(entry, value), "config.json");
  };
  const std::pair<const char*, const char*> others[] = {{"attn_logit_softcapping", "30.0"},
                                                        {"num_local_experts", "8"},
                                                        {"use_qk_norm", "true"},
                                                        {"residual_multiplier", "0.22"},
                                                        {"partial_rotary_factor", "0.5"},
                                                        {"rope_interleaved", "true"},
                                                        {"quantization_config", "{\"bits\": 4}"},
                                                        {"auto_map", "{\"AutoModel\": \"own.py\"}"}};
  for (const auto& [entry, value] : others)
    expect_error(ErrorCode::unsupported, {"config.json", "not honored", entry},
                 [&] { config(entry, value); });
  EXPECT_NO_THROW(config("attn_logit_softcapping", "null"));
  EXPECT_NO_THROW(config("partial_rotary_factor", "1.0"));
  EXPECT_EQ(config("sliding_window", "16").context, 16);
  EXPECT_EQ(config("rms_norm_eps", "").epsilon, 1e-6) << "as LlamaConfig has it";
  expect_error(ErrorCode::unsupported, {"chunked_attention"},
               [&] { config("layer_types", "[\"chunked_attention\"]"); });
  expect_error(ErrorCode::unsupported, {"gelu"}, [&] { config("hidden_act", "\"gelu\""); });
  expect_error(ErrorCode::unsupported, {"mscale"},
               [&] { config("rope_scaling", R"({"rope_type": "linear", "factor": 2.0, "mscale": 1.5})"); });
  expect_error(ErrorCode::bad_file, {"'factor'"},
               [&] { config("rope_scaling", R"({"rope_type": "linear"})"); });
}

TEST(ModelEntries, AnUnknownNoteOfAGgufFileIsRefusedWithItsValue) {
  const ScratchFolder folder;
  const Arrays arrays = arrays_of(models / "llama");
  const auto config = [&](const char* name, const Note& value) {
    gguf_of(arrays, {{name, value}}).write(folder / "model.gguf");
    return model_config(data::WeightFile::open(folder / "model.gguf"));
  };
  const std::pair<const char*, Note> others[] = {{"llama.attn_logit_softcapping", 30.0f},
                                                 {"llama.expert_count", 8u},
                                                 {"llama.attention.scale", 0.1f},
                                                 {"general.type", "adapter"},
                                                 {"split.count", 3u}};
  for (const auto& [name, value] : others)
    expect_error(ErrorCode::unsupported, {"model.gguf", "not honored", std::string(name).substr(6)},
                 [&] { config(name, value); });
  expect_error(ErrorCode::unsupported, {"rope.dimension_count", "2", "only 4"},
               [&] { config("llama.rope.dimension_count", 2u); });
  expect_error(ErrorCode::unsupported, {"'yarn'"}, [&] { config("llama.rope.scaling.type", "yarn"); });
  expect_error(ErrorCode::bad_file, {"llama.rope.freq_base"},
               [&] { config("llama.rope.freq_base", "10000"); });
  EXPECT_EQ(config("llama.rope.freq_base", 500u).rotary_base, 500) << "a whole number is one, too";
  EXPECT_EQ(config("llama.rope.scale_linear", 4.0f).scaling.factor, 4);
  EXPECT_NO_THROW(config("llama.expert_count", 0u));
  EXPECT_NO_THROW(config("general.name", "anything"));
}

}  // namespace
}  // namespace superstep::language
