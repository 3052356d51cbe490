// Snappy's blocks: how pages of Parquet are packed where nothing else was asked for.
#pragma once

#include <cstddef>
#include <span>

namespace superstep::data {

// False where they are damaged, or of another length than `to`.
bool unpack_snappy(std::span<const std::byte> packed, std::span<std::byte> to);

}  // namespace superstep::data
