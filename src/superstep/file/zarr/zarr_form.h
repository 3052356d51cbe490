// Stores of Zarr as sources, for the table in file/source/forms.cpp.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"

namespace superstep::data {

// A folder that is a store of version 2 or 3: its arrays, by their paths; chunks are read when rows of them
// are wanted.
bool is_zarr(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_zarr(const std::filesystem::path& path, const SourceRequest& request);

}  // namespace superstep::data
