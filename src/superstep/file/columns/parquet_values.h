// Values of a page of Parquet, in each of the encodings that it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/columns/parquet_meta.h"

namespace superstep::data::columns {

// Values one behind the other, as they are in memory: numbers of the physical type (booleans and halves of
// their own width), or bytes with their beginnings.
struct Values {
  std::size_t count = 0;
  std::vector<std::byte> bytes = {};
  std::vector<std::uint64_t> begins = {};  // of bytes, and the end
};

// Of a number; of bytes 0.
std::size_t value_width(const ParquetLeaf& leaf);

// `count` values that are there. `dictionary`: of the chunk, null where it has none. Throws Error: bad_file
// (cut short, damaged), unsupported (an encoding that it names).
Values decode_values(const ParquetLeaf& leaf, std::int64_t encoding, std::span<const std::byte> bytes,
                     std::size_t count, const Values* dictionary, const std::string& where);

}  // namespace superstep::data::columns
