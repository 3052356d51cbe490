// Zip archives (stored and deflated entries, ZIP64) through libzip.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::data {

using ZipEntries = std::map<std::string, std::vector<std::byte>>;

// Every entry, folders left out. Checksums are verified. An entry that claims more than its compressed
// bytes can hold is refused before anything is allocated. Throws Error (bad_file, unsupported).
ZipEntries parse_zip(std::span<const std::byte> bytes, std::string_view where);
ZipEntries read_zip(const std::filesystem::path& path);

// Entries as they are, without compression; atomically. Throws Error (io).
void write_zip(const std::filesystem::path& path, const ZipEntries& entries);

}  // namespace superstep::data
