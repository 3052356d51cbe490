// How chunks of arrays are packed: zlib, gzip and zstd as streams, Blosc's container of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace superstep::data::zarr {

enum class Codec : std::uint8_t { none, deflate, zstd, blosc, checksum };

// Whether this program was built with what unpacks it.
bool is_known(Codec codec);

// The bytes that `packed` holds, `size` of them; fewer or more are an Error (bad_file), as damage is.
// (unsupported) names a kind of Blosc's that is not read. `checksum` is four bytes behind the others
// (CRC-32C), which are held against them and taken off.
std::vector<std::byte> unpack(Codec codec, std::span<const std::byte> packed, std::size_t size,
                              const std::string& where);

}  // namespace superstep::data::zarr
