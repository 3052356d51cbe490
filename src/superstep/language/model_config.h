// The sizes of a model that continues text, as a config.json of Hugging Face or the notes of a GGUF file say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/weights/weight_file.h"
#include "superstep/language/rotary.h"

namespace superstep::language {

enum class Family : std::uint8_t { llama, gpt2 };
const char* name_of(Family family);

// Whether a model has arrays that its kind may go without.
enum class Holds : std::uint8_t { no, yes, as_the_file_has };

struct ModelConfig {
  Family family = Family::llama;
  std::int64_t layers = 0, width = 0, heads = 0, key_heads = 0, head_size = 0, inner = 0;
  std::int64_t context = 0;     // positions that a text may have
  std::int64_t vocabulary = 0;  // 0: as many as the table of embeddings has rows
  double epsilon = 1e-5;        // of the norms
  double rotary_base = 10000;
  RotaryScaling scaling;
  Holds attention_biases = Holds::no, inner_biases = Holds::no;  // of llama; gpt2 has them all
  Holds head = Holds::as_the_file_has;  // of its own; without one the table of embeddings is it
  std::vector<std::int64_t> ends;       // tokens after which nothing follows
};

// Of the file itself, or of the config.json beside it. Throws Error: not_found (no config.json), bad_file
// (which entry), unsupported (another kind of model, which it names, or entries that are not honored).
ModelConfig model_config(const data::WeightFile& file);
ModelConfig model_config_from_json(std::string_view text, const std::string& where);

}  // namespace superstep::language
