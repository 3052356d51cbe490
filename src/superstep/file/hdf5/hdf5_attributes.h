// Inside of the HDF5 layer: scalar attributes of an open object.
#pragma once

#include <map>
#include <string>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/hdf5_handle.h"

namespace superstep::data::hdf5 {

std::map<std::string, Attribute> read_attributes(hid_t object);
bool write_attribute(hid_t object, const std::string& name,
                     const Attribute& value);  // replaces; false: failed

}  // namespace superstep::data::hdf5
