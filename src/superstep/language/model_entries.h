// What a model's config.json or the notes of its GGUF file may say: an entry that nothing here reads, and
// that is not known to leave the model's numbers alone, is refused by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "superstep/file/weights/weight_file.h"

namespace superstep::language {

// Throws Error (unsupported) that names every entry with its value. `kind`: llama, mistral or gpt2.
void require_known_entries(const nlohmann::json& config, const std::string& kind, const std::string& where);
// The same of what a config.json says of rotary positions.
void require_known_rotary_entries(const nlohmann::json& rotary, const std::string& where);
// The same of the notes of a GGUF file whose architecture is `kind`.
void require_known_notes(const data::WeightFile& file, const std::string& kind);

}  // namespace superstep::language
