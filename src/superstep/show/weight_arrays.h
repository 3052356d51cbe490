// Files of trained weights as files of arrays: safetensors and its shards, PyTorch's archives, GGUF.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/show/array_file.h"

namespace superstep::show {

bool is_shown_as_weights(const std::filesystem::path& path);  // by its name

// Arrays are read where they lie; packed ones are unpacked one at a time. Throws what data::WeightFile
// throws.
std::unique_ptr<ArrayFile> open_weight_arrays(const std::filesystem::path& path);

}  // namespace superstep::show
