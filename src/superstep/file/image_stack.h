// Stacks of images from whatever file they came in.
#pragma once

#include <filesystem>
#include <string_view>

#include "superstep/base/tensor.h"

namespace superstep::data {

// Images of a TIFF, npy or HDF5 file, which its bytes tell, as [images, height, width] in the element
// type of the file, or with a trailing axis of channels where `channels` allows it. One image may come
// without the first axis. `data_set` names the array of an HDF5 file.
// Throws Error: those of the readers; bad_file for another rank, for no images, and for NaN or infinity.
Tensor read_image_stack(const std::filesystem::path& path, std::string_view data_set, bool channels = false);

}  // namespace superstep::data
