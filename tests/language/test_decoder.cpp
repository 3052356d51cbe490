// Decoders against Hugging Face's transformers in f64, and against themselves.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/base/system/matrix_registers.h"
#include "superstep/language/decode/byte_panels.h"
#include "superstep/language/decode/decoder.h"
#include "superstep/language/decode/pair_panels.h"
#include "tests/expect_error.h"
#include "tests/language/models.h"
#include "tests/scratch.h"

namespace superstep::language {
namespace {

using Tokens = std::vector<std::int32_t>;

Decoder decoder_of(const std::filesystem::path& path, const DecoderSettings& settings = {.threads = 2}) {
  const data::WeightFile file = data::WeightFile::open(path);
  return Decoder(file, model_config(file), settings);
}

Tokens text_of(const Expected& expected, std::int64_t text) {
  Tokens tokens;
  const std::int64_t length = expected.ids.shape()[1];
  for (std::int64_t i = 0; i < length; ++i)
    tokens.push_back(static_cast<std::int32_t>(expected.ids.at(text * length + i)));
  return tokens;
}

// The largest difference between scores and the logits at a place of a text, as a share of the largest logit.
double difference(std::span<const float> scores, const Expected& expected, std::int64_t text,
                  std::int64_t at) {
  const std::int64_t length = expected.ids.shape()[1], vocabulary = expected.logits.shape()[2];
  double largest = 0, worst = 0;
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    const double truth = expected.logits.at((text * length + at) * vocabulary + v);
    largest = std::max(largest, std::abs(truth));
    worst = std::max(worst, std::abs(static_cast<double>(scores[static_cast<std::size_t>(v)]) - truth));
  }
  return worst / largest;
}

class Decoders : public ::testing::TestWithParam<const char*> {};

// Token by token, and all together.
TEST_P(Decoders, SayWhatTransformersSays) {
  const Expected expected = expected_of(GetParam());
  Decoder decoder = decoder_of(models / GetParam(), {.threads = 2, .exact = true});
  for (std::int64_t text = 0; text < 2; ++text) {
    const Tokens tokens = text_of(expected, text);
    decoder.rewind(0);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      EXPECT_LT(difference(decoder.feed(std::span(tokens).subspan(i, 1)), expected, text,
                           static_cast<std::int64_t>(i)),
                1e-5)
          << "token " << i;
    decoder.rewind(0);
    EXPECT_LT(difference(decoder.feed(tokens), expected, text, static_cast<std::int64_t>(tokens.size()) - 1),
              1e-5);
  }
}

// Single tokens multiply packed weights by activations of 8 bits, each block of 32 of its own scale. This
// model has single blocks in a row and large weights: errors of 6 % of the largest logit were seen, of a text
// that is read together, where the head alone is such a product, .5 %. What the products themselves keep is
// in test_products.cpp.
TEST(Decoder, RoundsActivationsOfPackedWeightsALittle) {
  const Expected expected = expected_of("gguf");
  Decoder decoder = decoder_of(models / "gguf");
  const Tokens tokens = text_of(expected, 0);
  double worst = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    worst = std::max(worst, difference(decoder.feed(std::span(tokens).subspan(i, 1)), expected, 0,
                                       static_cast<std::int64_t>(i)));
  EXPECT_LT(worst, 0.1);
  EXPECT_GT(worst, 1e-4) << "nothing was rounded";
  decoder.rewind(0);
  EXPECT_LT(difference(decoder.feed(tokens), expected, 0, static_cast<std::int64_t>(tokens.size()) - 1),
            0.01);
}

using Scores = std::vector<float>;

Tokens forty_tokens() {
  Tokens tokens;
  for (std::int32_t i = 0; i < 40; ++i) tokens.push_back(i * 7 % 384);
  return tokens;
}

Scores scores_of_forty(const std::filesystem::path& model, const DecoderSettings& settings,
                       std::size_t at_once) {
  const Tokens tokens = forty_tokens();
  Decoder decoder = decoder_of(model, settings);
  std::span<const float> scores;
  for (std::size_t first = 0; first < tokens.size(); first += at_once)
    scores = decoder.feed(std::span(tokens).subspan(first, at_once));
  return {scores.begin(), scores.end()};
}

// The largest difference, as a share of the largest score.
float apart(const Scores& a, const Scores& b) {
  float largest = 0, worst = 0;
  for (std::size_t v = 0; v < a.size(); ++v) {
    largest = std::max(largest, std::abs(a[v]));
    worst = std::max(worst, std::abs(a[v] - b[v]));
  }
  return worst / largest;
}

// So do many tokens that are read together, as each does alone where the processor multiplies them as bytes;
// and their bits are the same on any number of threads.
TEST(Decoder, RoundsActivationsOfManyTokensAsOfOne) {
  const auto path = models / "gguf";
  const Scores exact = scores_of_forty(path, {.threads = 2, .exact = true}, 40),
               found = scores_of_forty(path, {.threads = 2}, 40),
               alone = scores_of_forty(path, {.threads = 2}, 1);
  EXPECT_LT(apart(exact, found), 0.1);
  EXPECT_GT(apart(exact, found), 1e-4) << "nothing was rounded";
  if (suits_byte_panels(Packing::q8_0))  // then those of fewer bits, too
    EXPECT_LT(apart(alone, found), 0.1 * apart(exact, alone));
  for (const int threads : {1, 3, 7})
    EXPECT_EQ(scores_of_forty(path, {.threads = threads}, 40), found) << threads;
}

// A Llama in bf16 whose products have several parts, in their rows and in their columns.
void write_wide_model(const std::filesystem::path& folder) {
  const std::int64_t width = 136, inner = 520, vocabulary = 384;
  data::SafetensorsFile file;
  RandomStream random(31);
  const auto add = [&](const std::string& name, const Shape& shape, double least, double most) {
    std::vector<bf16> values;
    for (std::int64_t i = 0; i < shape.element_count(); ++i)
      values.emplace_back(static_cast<float>(random.uniform(least, most)));
    file.tensors.emplace(name, Tensor::from(shape, values));
  };
  const auto product = [&](const std::string& name, std::int64_t features, std::int64_t in) {
    const double spread = 2 / std::sqrt(static_cast<double>(in));
    add(name + ".weight", Shape{features, in}, -spread, spread);
  };
  product("model.embed_tokens", vocabulary, width);
  product("lm_head", vocabulary, width);
  add("model.norm.weight", Shape{width}, 0.9, 1.1);
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    add(layer + "input_layernorm.weight", Shape{width}, 0.9, 1.1);
    add(layer + "post_attention_layernorm.weight", Shape{width}, 0.9, 1.1);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      product(layer + "self_attn." + name, width, width);
    product(layer + "mlp.gate_proj", inner, width);
    product(layer + "mlp.up_proj", inner, width);
    product(layer + "mlp.down_proj", width, inner);
  }
  data::write_safetensors(folder / "model.safetensors", file);
  write_file_atomically(
      folder / "config.json",
      R"({"model_type": "llama", "hidden_size": 136, "intermediate_size": 520, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 384, "max_position_embeddings": 64,
      "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": false})");
}

// Many tokens that are read together are rounded to bf16 where weights are, and pairs of these are fast: each
// activation by 2^-8 of itself at most. What the products themselves keep is in test_pair_panels.cpp. The
// bits are the same on any number of threads; `exact` is f32, which says what tokens say one by one.
TEST(Decoder, RoundsActivationsOfManyTokensToPairs) {
  const ScratchFolder folder;
  const std::filesystem::path model = folder / "wide";
  std::filesystem::create_directory(model);
  write_wide_model(model);
  const Scores exact = scores_of_forty(model, {.threads = 2, .exact = true}, 40),
               found = scores_of_forty(model, {.threads = 2}, 40),
               alone = scores_of_forty(model, {.threads = 2}, 1);
  EXPECT_LT(apart(exact, alone), 1e-5);
  EXPECT_LT(apart(exact, found), 0.01);
  if (suits_pair_panels(Packing::bf16) && !has_matrix_registers()) {
    EXPECT_GT(apart(exact, found), 1e-4) << "nothing was rounded";
  } else {
    EXPECT_LT(apart(exact, found), 1e-4);
  }
  for (const int threads : {1, 3, 7, 64}) {
    EXPECT_EQ(scores_of_forty(model, {.threads = threads}, 40), found) << threads;
    EXPECT_EQ(scores_of_forty(model, {.threads = threads, .exact = true}, 40), exact) << threads;
  }
}

// The control: another text's logits are far away.
TEST_P(Decoders, DoNotSayWhatAnotherTextSays) {
  const Expected expected = expected_of(GetParam());
  Decoder decoder = decoder_of(models / GetParam());
  const Tokens tokens = text_of(expected, 0);
  EXPECT_GT(difference(decoder.feed(tokens), expected, 1, static_cast<std::int64_t>(tokens.size()) - 1), 0.1);
}

INSTANTIATE_TEST_SUITE_P(Models, Decoders, ::testing::Values("llama", "llama3", "gpt2", "gguf"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Decoder, CutsOfATextDoNotMatter) {
  Decoder decoder = decoder_of(models / "llama");
  const Tokens tokens = text_of(expected_of("llama"), 0);
  const auto whole = decoder.feed(tokens);
  const std::vector<float> scores(whole.begin(), whole.end());
  for (std::size_t cut = 1; cut < tokens.size(); ++cut) {
    decoder.rewind(0);
    decoder.feed(std::span(tokens).first(cut));
    const auto again = decoder.feed(std::span(tokens).subspan(cut));
    for (std::size_t v = 0; v < scores.size(); ++v) ASSERT_NEAR(again[v], scores[v], 2e-5) << cut;
  }
}

TEST(Decoder, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Tokens tokens = text_of(expected_of("gguf"), 1);
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 7}) {
    Decoder decoder = decoder_of(models / "gguf", {.threads = threads});
    decoder.feed(std::span(tokens).first(5));
    const auto scores = decoder.feed(std::span(tokens).subspan(5, 1));
    if (first.empty()) first.assign(scores.begin(), scores.end());
    EXPECT_TRUE(std::ranges::equal(scores, first)) << threads;
  }
}

// Pages of the cache begin at 64 positions: a text that goes through three of them.
TEST(Decoder, GoesThroughSeveralPages) {
  const ScratchFolder folder;
  std::filesystem::copy(models / "llama", folder / "longer");
  std::string config = read_text_file(folder / "longer/config.json");
  const std::size_t at = config.find("\"max_position_embeddings\": 64");
  ASSERT_NE(at, std::string::npos);
  config.replace(at, 29, "\"max_position_embeddings\": 200");
  write_file_atomically(folder / "longer/config.json", config);
  Decoder decoder = decoder_of(folder / "longer");
  Tokens tokens;
  for (std::int32_t i = 0; i < 150; ++i) tokens.push_back(i * 7 % 384);
  const auto whole = decoder.feed(tokens);
  const std::vector<float> scores(whole.begin(), whole.end());
  decoder.rewind(60);
  decoder.feed(std::span(tokens).subspan(60, 70));
  const auto again = decoder.feed(std::span(tokens).subspan(130));
  for (std::size_t v = 0; v < scores.size(); ++v) ASSERT_NEAR(again[v], scores[v], 2e-5);
  EXPECT_EQ(decoder.position(), 150);
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  Decoder decoder = decoder_of(models / "llama", {.context = 8});
  const Tokens beyond{384}, nine(9, 1), none;
  expect_error(ErrorCode::invalid_argument, {"token 384", "384"}, [&] { decoder.feed(beyond); });
  expect_error(ErrorCode::invalid_argument, {"9 tokens", "context of 8"}, [&] { decoder.feed(nine); });
  expect_error(ErrorCode::invalid_argument, {"no token"}, [&] { decoder.feed(none); });
  EXPECT_EQ(decoder.position(), 0);
  const Tokens eight(8, 1);
  decoder.feed(eight);
  expect_error(ErrorCode::invalid_argument, {"position 9"}, [&] { decoder.rewind(9); });
}

TEST(Decoder, ListsEveryArrayThatDiffers) {
  const ScratchFolder folder;
  std::filesystem::copy(models / "llama3", folder / "other");
  std::string config = read_text_file(folder / "other/config.json");
  const std::size_t at = config.find("\"intermediate_size\": 24");
  config.replace(at, 23, "\"intermediate_size\": 28");
  write_file_atomically(folder / "other/config.json", config);
  expect_error(ErrorCode::bad_file,
               {"6 arrays differ", "model.layers.0.mlp.gate_proj.weight is [24,16] in the file, not [28,16]",
                "model.layers.1.mlp.down_proj.weight is [16,24] in the file, not [16,28]"},
               [&] { decoder_of(folder / "other"); });
}

TEST(ModelConfig, NamesWhatItDoesNotKnow) {
  const auto config = [](const char* text) { return model_config_from_json(text, "config.json"); };
  expect_error(ErrorCode::unsupported, {"config.json", "'bert'"},
               [&] { config(R"({"model_type":"bert"})"); });
  expect_error(ErrorCode::bad_file, {"config.json", "num_hidden_layers"},
               [&] { config(R"({"model_type":"llama"})"); });
  expect_error(ErrorCode::bad_file, {"no JSON"}, [&] { config("[1,2"); });
  expect_error(ErrorCode::bad_file, {"n_layer"}, [&] { config(R"({"model_type":"gpt2","n_layer":-3})"); });
  const char* yarn = R"({"model_type":"llama","num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,
    "intermediate_size":8,"vocab_size":8,"rope_scaling":{"type":"yarn","factor":2}})";
  expect_error(ErrorCode::unsupported, {"'yarn'"}, [&] { config(yarn); });
}

}  // namespace
}  // namespace superstep::language
