// GGUF files: notes by name, and arrays, some packed in blocks, after a header (the ggml project's format,
// versions 2 and 3, little-endian).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/weights/weight.h"

namespace superstep::data {

struct GgufFile {
  WeightNotes notes;
  std::vector<Weight> weights;  // in the order of the file
};

// `bytes` are kept by `owner`. Throws Error: bad_file (what is wrong, and at which name), unsupported
// (another version, byte order or kind of block).
GgufFile parse_gguf(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                    const std::string& where);

}  // namespace superstep::data
