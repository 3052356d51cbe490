// The checksum of TFRecord and of other formats: CRC-32C (Castagnoli; RFC 3720, appendix B.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace superstep::data {

std::uint32_t crc32c(std::span<const std::byte> bytes);
// As TFRecord stores it: turned by 15 bits and a constant added, for checksums of what holds checksums would
// be weak (TensorFlow, lib/hash/crc32c.h).
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace superstep::data
