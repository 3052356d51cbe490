// What files have packed as one piece of a length that is known: chunks of arrays, pages of columns, buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace superstep::data {

// `deflate` is a stream of zlib or of gzip, by its header; `lz4` a block, `lz4_frame` one with its header.
enum class Packing : std::uint8_t { none, deflate, zstd, lz4, lz4_frame, snappy };

// Whether this program was built with what unpacks it, and what it is called: "zstd".
bool is_built_in(Packing packing);
const char* name_of(Packing packing);

// Fills `to`, which is as long as what was packed. Throws Error naming `where`: bad_file (it is damaged, or
// of another length), unsupported (this program was built without it).
void unpack_into(Packing packing, std::span<const std::byte> packed, std::span<std::byte> to,
                 const std::string& where);

}  // namespace superstep::data
