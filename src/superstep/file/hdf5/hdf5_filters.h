// Inside of the HDF5 layer: whether the plug-ins that unpack a data set can do what its parameters ask for.
#pragma once

#include <string>

#include "superstep/file/hdf5/hdf5_handle.h"

namespace superstep::data::hdf5 {

// A plug-in may ignore a parameter that is newer than it is, and give other numbers without a word. Throws
// Error (unsupported) that names the filter. Filters that are not installed are left to reading, which says
// so.
void require_filters(hid_t set, const std::string& where);

}  // namespace superstep::data::hdf5
