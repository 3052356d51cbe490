// The door through which files of users are opened to be read: what is no regular file (a pipe that nobody
// writes to, a device without an end, a socket, a folder) is refused before anything waits for it.
#pragma once

#include <filesystem>
#include <fstream>

namespace superstep {

// What errno says of a call that should have opened `path`: throws Error, not_found or io.
[[noreturn]] void refuse_to_open(const std::filesystem::path& path);

// Before a library opens the file itself. Never waits. Throws Error: not_found, bad_file (no regular file),
// io (it may not be read).
void require_regular_file(const std::filesystem::path& path);

// Opened, byte for byte. Throws as require_regular_file().
std::ifstream open_regular_file(const std::filesystem::path& path);

}  // namespace superstep
