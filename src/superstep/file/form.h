// What a file is by its first bytes: its name may say something else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace superstep::data {

enum class FileForm : std::uint8_t { npy, npz, hdf5, safetensors, tiff, gguf, text, other };

// `other` also where there is no such file, or nothing in it. Text is of printable characters: CSV, JSON,
// XYZ.
FileForm form_of(const std::filesystem::path& path);
const char* name_of(FileForm form);  // "an npy file"

// Whether these bytes, the first of a file, are those of a text.
bool is_printable_text(std::string_view begin);

// Whether a name ends in one of these, in capitals or small letters; `endings` in small ones.
bool ends_in(const std::filesystem::path& path, std::initializer_list<std::string_view> endings);

// Whether a file is a text rather than one of the other forms; where its bytes do not say (there are none),
// whether its name ends in one of `endings`.
bool is_text(const std::filesystem::path& path, std::initializer_list<std::string_view> endings);

}  // namespace superstep::data
