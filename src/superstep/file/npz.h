// NumPy's .npz files: a zip archive of .npy files.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "superstep/base/tensor.h"

namespace superstep::data {

using NamedTensors = std::map<std::string, Tensor>;

// Arrays by name, without ".npy". Throws Error that names the entry: see npy.h and zip.h.
NamedTensors read_npz(const std::filesystem::path& path);
NamedTensors parse_npz(std::span<const std::byte> bytes, std::string_view where);
void write_npz(const std::filesystem::path& path, const NamedTensors& arrays);  // as numpy.savez

}  // namespace superstep::data
