// Safetensors files: named tensors after a JSON header (the format of Hugging Face's library of the name).
//
// The file: an unsigned 64-bit little-endian length of the header, the header, the elements. The header
// maps a name to {"dtype", "shape", "data_offsets": [begin, end)}, offsets counted from the end of the
// header; "__metadata__" maps strings to strings. Elements leave no gaps and do not overlap.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Throws Error: not_found, bad_file (what is wrong, and with which tensor), unsupported (8-bit floats), io.
SafetensorsFile read_safetensors(const std::filesystem::path& path);
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, std::string_view where);

// The file without its elements: where each array lies, in the order of the data.
struct SafetensorsPlace {
  std::string name;
  ElementType type;
  Shape shape;
  std::span<const std::byte> bytes;  // within those that were given
};
struct SafetensorsLayout {
  std::vector<SafetensorsPlace> places;
  std::map<std::string, std::string> metadata;
};
SafetensorsLayout safetensors_layout(std::span<const std::byte> bytes, std::string_view where);

// SHA-256 of names, types, shapes, elements and metadata, but for the entry digest_entry: 64 hexadecimal
// figures.
std::string digest_of(const SafetensorsFile& file);
inline constexpr const char* digest_entry = "sha256";  // where a file keeps it, in its metadata

// Atomically; equal content gives equal bytes.
void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file);
std::vector<std::byte> format_safetensors(const SafetensorsFile& file);

}  // namespace superstep::data
