// What is no file of arrays but is read as samples (folders of pictures, archives, tables), as arrays to
// draw.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/show/array_file.h"

namespace superstep::show {

// Pictures of several sizes are brought to that of the first. Throws Error naming what is wrong with it.
std::unique_ptr<ArrayFile> open_source_arrays(const std::filesystem::path& given);

}  // namespace superstep::show
