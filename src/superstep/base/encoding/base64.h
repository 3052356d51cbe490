// Base64 (RFC 4648, with padding): bytes inside text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep {

std::string base64_encode(std::span<const std::byte> bytes);

// The bytes, or nothing when `text` is not the one encoding of some bytes: a foreign character, a length
// that is no multiple of four, padding in the middle, bits set that belong to no byte.
std::optional<std::vector<std::byte>> base64_decode(std::string_view text);

}  // namespace superstep
