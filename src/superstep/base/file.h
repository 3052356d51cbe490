// Whole files in and out. Writing is atomic: a reader sees the old file or the new one, never a half.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "superstep/base/error.h"

namespace superstep {

std::string read_text_file(const std::filesystem::path& path);  // throws Error (not_found, io)

// Writes to a temporary file beside `path`, flushes it to the disk and renames it over `path`. Throws
// Error (io) when that fails, a full disk included, and leaves what was there before untouched.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// The same of contents in several pieces of memory, one after another.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);

// Appends one line and flushes; throws Error (io).
void append_line(const std::filesystem::path& path, std::string_view line);

// Throws the Error (not_found, io) that writing `path` would end in, as far as that can be known before the
// work is done: no such folder, one that may not be written to, a folder in the file's place.
void require_writable(const std::filesystem::path& path);

// Makes a folder and its parents; throws Error (io).
void make_folder(const std::filesystem::path& path);

// Where the program keeps what outlives a run: $SUPERSTEP_HOME, else $XDG_DATA_HOME/superstep, else
// ~/.local/share/superstep. Made when missing.
std::filesystem::path user_data_folder();

}  // namespace superstep
