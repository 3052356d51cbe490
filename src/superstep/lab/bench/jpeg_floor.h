// Decoding of JPEGs by the library alone: the least that a reader of such pictures takes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace superstep::lab {

// The bytes of JPEGs among these files and in these folders, `most` of them at most.
std::vector<std::vector<std::byte>> jpegs_in(const std::vector<std::filesystem::path>& paths,
                                             std::size_t most);

// Red, green and blue, or gray, into memory that is used again. False where the library finds it damaged.
bool decode_with_libjpeg(std::span<const std::byte> jpeg, std::vector<unsigned char>& pixels);

}  // namespace superstep::lab
