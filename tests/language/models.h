// The models of tests/language/models, and what transformers says of a text.
#pragma once

#include <filesystem>

#include "superstep/file/safetensors.h"
#include "superstep/file/weights/weight_file.h"

namespace superstep::language {

inline const std::filesystem::path models = std::filesystem::path(SUPERSTEP_SOURCE) / "tests/language/models";

struct Expected {
  Tensor ids;     // i64 [texts, length]
  Tensor logits;  // f64 [texts, length, vocabulary]
};

inline Expected expected_of(const std::string& model) {
  data::SafetensorsFile file = data::read_safetensors(models / model / "expected.safetensors");
  return {file.tensors.at("input_ids"), file.tensors.at("logits")};
}

}  // namespace superstep::language
