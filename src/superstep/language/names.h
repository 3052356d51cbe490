// What Hugging Face's files and GGUF files call the arrays of the models that continue text, beside this
// program's own names (workload/language/causal).
#pragma once

#include <span>

#include "superstep/file/weights/names.h"

namespace superstep::language {

std::span<const data::NameRule> llama_names();
std::span<const data::NameRule> gpt2_names();
// Arrays, without wrappers, that files may have beside these and that no model needs.
std::span<const char* const> names_of_buffers();

}  // namespace superstep::language
