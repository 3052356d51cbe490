// Opens whatever file of arrays there is.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"
#include "superstep/show/array_file.h"

namespace superstep::show {

// Opens an HDF5, npy, npz or model file, or weights (show/weight_arrays.h), told apart by their first bytes
// or their names; anything else that can be read as samples (show/sample_arrays.h), for which `request` is.
// npy, npz and models are read whole. Throws Error (not_found, bad_file, unsupported) that names the file
// and, where there is one, the array.
std::unique_ptr<ArrayFile> open_array_file(const std::filesystem::path& path,
                                           const data::SourceRequest& request = {});

}  // namespace superstep::show
