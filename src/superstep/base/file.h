// Whole files in and out. Writing is atomic: a reader sees the old file or the new one, never a half.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "superstep/base/error.h"

namespace superstep {

std::string read_text_file(const std::filesystem::path& path);  // throws Error (not_found, io, bad_file)

// Writes to a temporary file beside `path`, flushes it to the disk and renames it over `path`. Throws
// Error (io) when that fails, a full disk included, and leaves what was there before untouched.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// The same of contents in several pieces of memory, one after another.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);

// Appends one line and flushes; throws Error (io).
void append_line(const std::filesystem::path& path, std::string_view line);

// Throws the Error (not_found, io) that writing `path` would end in, as far as that can be known before the
// work is done: no such folder, one that nothing can be written to (which is tried), a folder in the file's
// place.
void require_writable(const std::filesystem::path& path);
// The same of a folder of files that will be made where it is missing.
void require_writable_folder(const std::filesystem::path& path);

// Makes a folder and its parents; throws Error (io).
void make_folder(const std::filesystem::path& path);

}  // namespace superstep
