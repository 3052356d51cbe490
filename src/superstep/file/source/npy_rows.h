// Inside of the forms of NumPy: an array with its header, somewhere in a file, as rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "superstep/file/source/row_reader.h"

namespace superstep::data {

// The array that begins, with its header, at byte `begin` of the file and has `size` bytes at most. Throws
// Error (bad_file, unsupported) naming `where`.
void add_npy_rows(ArraySource& source, std::string name, const std::shared_ptr<const StableFile>& file,
                  std::uint64_t begin, std::uint64_t size, const std::string& where);

}  // namespace superstep::data
