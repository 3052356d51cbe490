// Arrays by name, in and out of the files users have: .npy, .npz, .h5/.hdf5, .safetensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/file/npz.h"

namespace superstep::run {

using data::NamedTensors;

// Every numeric array of a file, whose form its bytes tell, in memory; the array of an npy file has the name
// "". Throws Error (not_found, bad_file, unsupported) naming the file and what it may be.
NamedTensors read_arrays(const std::filesystem::path& path);
// What else an HDF5 file has that is no array of numbers: "'mask' (compound)". Of other files nothing.
std::vector<std::string> other_arrays(const std::filesystem::path& path);

// By the ending of `path`, atomically. An .npy file takes exactly one array; NumPy's formats have no bf16,
// which is written as f32.
void write_arrays(const std::filesystem::path& path, const NamedTensors& arrays);

// Throws the Error that write_arrays would throw for this ending, before the work is done.
void check_array_file(const std::filesystem::path& path, std::size_t arrays);

}  // namespace superstep::run
