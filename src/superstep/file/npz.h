// NumPy's .npz files: a zip archive of .npy files.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "superstep/base/tensor.h"
#include "superstep/file/npy.h"
#include "superstep/file/zip.h"

namespace superstep::data {

using NamedTensors = std::map<std::string, Tensor>;

// Arrays by name, without ".npy". Throws Error that names the entry: see npy.h and zip.h.
NamedTensors read_npz(const std::filesystem::path& path);
NamedTensors parse_npz(std::span<const std::byte> bytes, std::string_view where);
// One of the archive's entries, by its name there; what its beginning says of it.
NpyLayout npz_layout(const ZipReader& archive, const ZipEntry& entry);
Tensor read_npz_entry(const ZipReader& archive, std::string_view entry);
void write_npz(const std::filesystem::path& path, const NamedTensors& arrays);  // as numpy.savez

}  // namespace superstep::data
