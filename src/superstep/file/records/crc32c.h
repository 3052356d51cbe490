// The checksum of TFRecord and of other formats: CRC-32C (Castagnoli; RFC 3720, appendix B.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace superstep::data {

std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace superstep::data
