// Bits of elements as rows and back: what bitshuffle does to a block of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace superstep::edge {

// Row 8 b + k has bit k of byte b of every element, element i in bit i mod 8 of byte i / 8. As many bytes in
// both, of a multiple of eight elements. `planes` is memory for the way, kept from call to call.
void rows_to_elements(std::span<const std::byte> rows, std::size_t element_bytes,
                      std::span<std::byte> elements, std::vector<std::byte>& planes);
void elements_to_rows(std::span<const std::byte> elements, std::size_t element_bytes,
                      std::span<std::byte> rows, std::vector<std::byte>& planes);

}  // namespace superstep::edge
