// What Hugging Face's files and GGUF files call the arrays of the models that continue text, beside this
// program's own names (workload/language/causal).
#pragma once

#include <span>

#include "superstep/file/weights/names.h"

namespace superstep::language {

std::span<const data::NameRule> llama_names();
std::span<const data::NameRule> gpt2_names();

}  // namespace superstep::language
