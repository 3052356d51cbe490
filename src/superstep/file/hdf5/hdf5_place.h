// Where the elements of an HDF5 data set lie in its file, where they can be read without the library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/file/hdf5/hdf5_handle.h"

namespace superstep::data {

// Elements as this machine has them, in one piece or in chunks that are packed by what is known here.
struct DataSetPlace {
  std::filesystem::path file;  // another one where a link leads there
  std::uint64_t element_bytes = 0;
  std::uint64_t begin = 0;          // of the first element, in one piece
  std::vector<std::int64_t> chunk;  // extents; empty: in one piece
  // Of each chunk, the last axis fastest: where it lies, and how long it is as it is stored.
  std::vector<std::uint64_t> at = {}, stored = {};
  bool shuffled = false, deflated = false;
};

namespace hdf5 {

// Nothing where only the library reads it. Of the data set that is open.
std::optional<DataSetPlace> place_of(hid_t set, hid_t type, hid_t space, ElementType element, bool complex);

}  // namespace hdf5
}  // namespace superstep::data
