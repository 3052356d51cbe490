// NumPy's .npy files (format versions 1.0 to 3.0; NumPy Enhancement Proposal 1).
//
// Read: booleans, integers of 1 to 8 bytes, floats of 2, 4 and 8, complex numbers of 8 and 16 (which get
// one more, innermost axis of 2: real, imaginary), either byte order, C and Fortran order (the tensor is
// always row-major). Strings, records and Python objects are refused. The bytes may come from anywhere:
// nothing is allocated before its size was checked against theirs.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

Tensor read_npy(const std::filesystem::path& path);  // throws Error (not_found, bad_file, unsupported, io)
// `where` names the source in errors.
Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where);

// Atomically. bf16, which NumPy does not have, is refused (unsupported).
void write_npy(const std::filesystem::path& path, const Tensor& tensor);
std::vector<std::byte> format_npy(const Tensor& tensor);

}  // namespace superstep::data
