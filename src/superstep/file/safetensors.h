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
#include "superstep/file/weights/blocks.h"

namespace superstep::data {

struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  // Tensors of a type of the format that is not read ("F4", "C64"), by name: the others are there all the
  // same.
  std::map<std::string, std::string> unread = {};
};

// Floats of 8 bits are read as f32. Throws Error: not_found, bad_file (what is wrong, and with which tensor),
// unsupported (a type that the format does not have), io.
SafetensorsFile read_safetensors(const std::filesystem::path& path);
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, std::string_view where);

// The file without its elements: where each array lies, in the order of the data.
struct SafetensorsPlace {
  std::string name;
  ElementType type;  // as it is read; f32 of floats of 8 bits
  Shape shape;
  std::span<const std::byte> bytes;        // within those that were given
  BlockFormat blocks = BlockFormat::none;  // of floats of 8 bits
  std::string unread = {};                 // the name of a type that is not read; empty: it is
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
