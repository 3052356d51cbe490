// Arrays by name, in and out of the files users have: .npy, .npz, .h5/.hdf5, .safetensors.
#pragma once

#include <filesystem>
#include <string>

#include "superstep/file/npz.h"

namespace superstep::run {

using data::NamedTensors;

// Every numeric array of the file, in memory; the only array of an .npy file has the name "". Throws Error
// (not_found, bad_file, unsupported) naming the file and what it may be.
NamedTensors read_arrays(const std::filesystem::path& path);

// By the ending of `path`, atomically. An .npy file takes exactly one array; NumPy's formats have no bf16,
// which is written as f32.
void write_arrays(const std::filesystem::path& path, const NamedTensors& arrays);

// Throws the Error that write_arrays would throw for this ending, before the work is done.
void check_array_file(const std::filesystem::path& path, std::size_t arrays);

}  // namespace superstep::run
