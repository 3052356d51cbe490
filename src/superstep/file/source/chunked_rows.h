// Rows of an HDF5 data set, read from its file without the library.
#pragma once

#include <memory>

#include "superstep/file/hdf5/hdf5_place.h"
#include "superstep/file/source/row_reader.h"

namespace superstep::data {

// Chunks that were unpacked are kept, the last ones of 64 MB. Null where the place does not fit the shape or
// the file: the library says what is wrong with it. `where` names the data set in errors.
std::unique_ptr<RowReader> rows_at(const DataSetPlace& place, const SourceArray& array,
                                   const std::string& where);

}  // namespace superstep::data
