// The binary files of the CIFAR-10 and CIFAR-100 collections.
#pragma once

#include <filesystem>

#include "superstep/base/tensor.h"

namespace superstep::data {

struct CifarFile {
  Tensor images;  // u8 [n, 3, 32, 32]: red, green, blue
  Tensor labels;  // u8 [n]; of CIFAR-100 the fine ones
  Tensor coarse;  // u8 [n] of CIFAR-100, else empty
};

// `classes` is 10 (records of 3,073 bytes: label, pixels) or 100 (3,074: coarse and fine label, pixels).
// Throws Error: not_found, bad_file (a size that is no whole number of records, a label out of range).
CifarFile read_cifar(const std::filesystem::path& path, int classes);

}  // namespace superstep::data
