// Pixels as detectors compress them: the other way of unpack.h, for a detector that is not there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace superstep::edge {

// "lz4" or "bslz4" in the framing of the HDF5 filters; throws Error (invalid_argument) on another method.
std::string pack(std::string_view method, std::size_t element_bytes, std::span<const std::byte> elements);

}  // namespace superstep::edge
