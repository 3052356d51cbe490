// Compressed pixels of detectors: "lz4" and "bslz4" (bits of a block transposed, then LZ4), in the framing of
// the HDF5 filters 32004 and 32008.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace superstep::edge {

// `size` bytes of elements of `element_bytes`. Throws Error (bad_file) where the bytes are not what they
// should be, (unsupported) on another method.
std::vector<std::byte> unpack(std::string_view method, std::size_t element_bytes,
                              std::span<const std::byte> packed, std::size_t size);

}  // namespace superstep::edge
